#!/usr/bin/env python3
"""Renders a terminal screen as a PNG.

After `cargo build -p nu_plugin_lisa -p demo-agent`, this command makes the pictures in the documentation
(docs/nu-*.png). It runs Nushell in a terminal, with its own state and tmux server and sessions of the demo agent:

    crates/nu_plugin_lisa/screenshot.py --docs

It can also render a capture with escape sequences (`tmux capture-pane -e -p`) from a file or standard input, or the
screen of Nushell after some commands, with your own sessions:

    tmux capture-pane -e -p -t nu | crates/nu_plugin_lisa/screenshot.py sessions.png --title 'nu'
    crates/nu_plugin_lisa/screenshot.py sessions.png --size 100x20 --run 'lisa session list'

Nushell is LISA_TEST_NU or the one in target/tools (`cargo xtask setup nu`); the plugin is from target/debug or --plugin.
If Python has no Pillow, it's installed into target/tools/pillow. The font is DejaVu Sans Mono.
"""

import argparse
import glob
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError:
    home = ROOT / "target/tools/pillow"
    python = home / "bin/python"
    if Path(sys.executable).parent == python.parent:
        raise
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "pillow"], check=True)
    os.execv(python, [python, *sys.argv])

BACKGROUND, FOREGROUND, BAR = "#1d1f21", "#d5d8d6", "#2b2e31"
PALETTE = [
    "#1d1f21", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d5d8d6",
    "#6b7075", "#ff7b86", "#b5e890", "#ffd68a", "#7cc4ff", "#dd9bf0", "#74d5e0", "#ffffff",
]
ESCAPE = re.compile(r"\x1b\[([0-9;:]*)([A-Za-z])|\x1b\].*?(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|[\x0e\x0f]")


def color(number):
    """The RGB value of one of the 256 colours."""
    if number < 16:
        return PALETTE[number]
    if number < 232:
        number -= 16
        steps = [0, 95, 135, 175, 215, 255]
        return tuple(steps[number // place % 6] for place in (36, 6, 1))
    return (8 + (number - 232) * 10,) * 3


class Style:
    """The style of the next character."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.fg, self.bg = None, None
        self.bold = self.italic = self.underline = self.inverse = self.dim = False

    def apply(self, text):
        codes = [int(code or 0) for code in re.split("[;:]", text)]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.reset()
            elif code in (1, 2, 3, 4, 7):
                setattr(self, {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code in (23, 24, 27):
                setattr(self, {23: "italic", 24: "underline", 27: "inverse"}[code], False)
            elif code in (38, 48):
                value, kind = None, codes.pop(0) if codes else 0
                if kind == 5 and codes:
                    value = color(codes.pop(0))
                elif kind == 2 and len(codes) >= 3:
                    value = tuple(codes.pop(0) for _ in range(3))
                setattr(self, "fg" if code == 38 else "bg", value)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fg = PALETTE[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.bg = PALETTE[code - 40 if code < 100 else code - 92]
            elif code == 39:
                self.fg = None
            elif code == 49:
                self.bg = None

    def colors(self):
        fg, bg = self.fg or FOREGROUND, self.bg or BACKGROUND
        return (bg, fg) if self.inverse else (fg, bg)


def cells(line, style):
    """Characters with their columns and styles. `style` carries over from line to line, as tmux writes it."""
    column, at = 0, 0
    while at < len(line):
        if match := ESCAPE.match(line, at):
            if match.group(2) == "m":
                style.apply(match.group(1))
            at = match.end()
            continue
        char = line[at]
        at += 1
        width = 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        yield column, width, char, style.colors(), (style.bold, style.italic), style.underline
        column += width


def draw(capture, path, columns, title, scale):
    lines = capture.rstrip("\n").split("\n")
    fonts, folder = {}, "/usr/share/fonts/truetype/dejavu/DejaVuSansMono"
    for bold, italic in ((0, 0), (1, 0), (0, 1), (1, 1)):
        name = "-" + "Bold" * bold + "Oblique" * italic if bold or italic else ""
        fonts[bool(bold), bool(italic)] = ImageFont.truetype(f"{folder}{name}.ttf", 14 * scale)
    plain = fonts[False, False]
    wide, high = plain.getlength("M"), sum(plain.getmetrics())
    longest = max((len(ESCAPE.sub("", line)) for line in lines), default=0)
    pad, bar = 12 * scale, 28 * scale if title else 0
    size = (int(wide * max(columns or 0, longest) + 2 * pad), int(high * len(lines) + 2 * pad + bar))
    image = Image.new("RGB", size, BACKGROUND)
    pen = ImageDraw.Draw(image)
    if title:
        pen.rectangle((0, 0, size[0], bar), fill=BAR)
        for index, dot in enumerate(("#e06c75", "#e5c07b", "#98c379")):
            x, y, r = pad + index * 18 * scale, bar / 2, 5 * scale
            pen.ellipse((x - r, y - r, x + r, y + r), fill=dot)
        pen.text((size[0] / 2, bar / 2), title, font=plain, fill=FOREGROUND, anchor="mm")
    style = Style()
    for row, line in enumerate(lines):
        top = pad + bar + row * high
        for column, width, char, (fg, bg), face, underline in cells(line, style):
            left = pad + column * wide
            if bg != BACKGROUND:
                pen.rectangle((left, top, left + width * wide, top + high), fill=bg)
            pen.text((left, top), char, font=fonts[face], fill=fg)
            if underline:
                pen.line((left, top + high - scale, left + width * wide, top + high - scale), fill=fg, width=scale)
    image.save(path)


def shell(plugin):
    """The command line of a Nushell with only the plugin."""
    nu = os.environ.get("LISA_TEST_NU") or next(
        iter(glob.glob(str(ROOT / "target/tools/nushell-*/node_modules/@nushell/*/bin/nu"))), "nu"
    )
    return [nu, "-n", "--plugins", f"[{plugin}]"]


def end_server(socket):
    """Stops a tmux server by killing its process."""
    asked = subprocess.run(["tmux", "-S", socket, "display-message", "-p", "#{pid}"], capture_output=True, text=True)
    if not asked.stdout.strip():
        return
    pid = int(asked.stdout)
    os.kill(pid, signal.SIGTERM)
    # Processes in it may still write to the directory that is removed next.
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)


def live(commands, size, env, plugin, wait, setup=""):
    """The screen of an interactive Nushell after some commands."""
    columns, rows = size
    setup = (
        "$env.config.show_banner = false; $env.PROMPT_COMMAND = {|| ''}; $env.PROMPT_COMMAND_RIGHT = ''; "
        "$env.PROMPT_INDICATOR = $'(ansi green_bold)> (ansi reset)'; " + setup
    )
    # Its own terminal even inside another tmux, with all of Nushell's colours.
    env = {name: value for name, value in env.items() if not name.startswith("TMUX")}
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/terminal"
        tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
        line = shlex.join([*shell(plugin), "-e", setup])
        subprocess.run([*tmux, "new-session", "-d", "-x", str(columns), "-y", str(rows), line], check=True, env=env)
        try:
            time.sleep(wait)
            for command in commands:
                subprocess.run([*tmux, "send-keys", "-l", command], check=True)
                subprocess.run([*tmux, "send-keys", "Enter"], check=True)
                time.sleep(wait)
            shown = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True)
        finally:
            end_server(socket)
    # The last prompt and the empty lines below it are left out of the picture.
    kept = shown.stdout.rstrip("\n").split("\n")
    while kept and ESCAPE.sub("", kept[-1]).strip() in ("", ">"):
        kept.pop()
    return "\n".join(kept)


# The sessions and the pictures of the documentation.
SESSIONS = {
    "fix-login": "!permission Bash rm -rf build",
    "docs": "!say The guide is up to date.",
    "api-tests": '!tool Bash "cargo test" 900s',
    "migrate": "!ask Database | Which database shall I use? | Postgres: as in production | SQLite: no server",
}
PICTURES = {
    "nu-list": (
        ["lisa session list", "lisa session list | where prompt != null | select name idle state"],
        (76, 24),
    ),
    "nu-prompt": (["lisa session list | where name == fix-login | get 0.prompt | table --expand"], (92, 30)),
    "nu-error": (["lisa session kill fix-logn", "lisa session answer fix-login --choice yes"], (84, 30)),
    "nu-dashboard": (["lisa dashboard"], (80, 24)),
}


def docs(plugin, wait, scale):
    """Makes the pictures of the documentation."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        (home / "shop").mkdir()
        env = {
            "PATH": f"{Path(plugin).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HOME": folder,
            "LISA_STATE_DIR": f"{folder}/state",
            "LISA_CONFIG_DIR": f"{folder}/config",
            "LISA_TMUX_SOCKET": f"{folder}/sessions",
        }
        try:
            for name, prompt in SESSIONS.items():
                spawn = f"lisa session spawn demo --name {name} --cwd {home / 'shop'} --prompt '{prompt}'"
                done = "--until attention" if name != "api-tests" else "--until working"
                script = f"{spawn} | ignore; lisa session monitor {name} {done} --timeout 60sec | ignore"
                subprocess.run([*shell(plugin), "-c", script], check=True, env=env)
            # Wait until all of them have started.
            time.sleep(12)
            for name, (commands, size) in PICTURES.items():
                capture = live(commands, size, env, plugin, wait, f"use {ROOT}/crates/nu_plugin_lisa/lisa.nu *")
                draw(capture, ROOT / f"docs/{name}.png", 0, "nu", scale)
        finally:
            end_server(f"{folder}/sessions")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("png", nargs="?")
    parser.add_argument("capture", nargs="?", help="a file with a capture (default: standard input)")
    parser.add_argument("--docs", action="store_true", help="make the pictures of the documentation")
    parser.add_argument("--run", action="append", default=[], help="a command to run in a Nushell; may be repeated")
    parser.add_argument("--setup", default="", help="Nushell code to run first, without showing it")
    parser.add_argument("--size", default="100x30", help="terminal size in columns x rows")
    parser.add_argument("--wait", type=float, default=2.0, help="seconds to wait after each command")
    parser.add_argument("--plugin", default=ROOT / "target/debug/nu_plugin_lisa", help="the plugin executable")
    parser.add_argument("--title", default="", help="text of the title bar")
    parser.add_argument("--scale", type=int, default=2)
    args = parser.parse_args()
    if args.docs:
        return docs(args.plugin, args.wait, args.scale)
    if not args.png:
        parser.error("name the PNG to write, or say --docs")
    if args.run:
        size = tuple(map(int, args.size.split("x")))
        capture, columns = live(args.run, size, os.environ, args.plugin, args.wait, args.setup), size[0]
    else:
        capture, columns = Path(args.capture).read_text() if args.capture else sys.stdin.read(), 0
    draw(capture, args.png, columns, args.title, args.scale)


if __name__ == "__main__":
    main()
