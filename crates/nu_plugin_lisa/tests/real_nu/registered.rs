//! The commands as Nushell has registered them.

use crate::sandbox::Sandbox;
use test_support::needs;

#[test]
fn every_command_has_a_description_an_example_and_declared_types() {
    let sandbox = needs!(Sandbox::new());
    let commands = sandbox.value(
        "scope commands | where type == plugin | each {|c| {
            name: $c.name
            description: $c.description
            category: $c.category
            examples: ($c.examples | length)
            types: ($c.signatures | values | flatten | where parameter_type == output | get syntax_shape)
        }}",
    );
    let commands = commands.as_array().unwrap();
    assert_eq!(commands.len(), 26);
    for command in commands {
        let name = command["name"].as_str().unwrap();
        assert!(command["description"].as_str().is_some_and(|text| text.ends_with('.')), "{command}");
        assert_eq!(command["category"], "lisa", "{name}");
        assert!(command["examples"].as_u64() > Some(0), "{name}");
        let types = command["types"].as_array().unwrap();
        assert!(!types.is_empty() && types.iter().all(|shape| shape != "any"), "{name}: {types:?}");
    }
}

#[test]
fn head_commands_show_their_help() {
    let sandbox = needs!(Sandbox::new());
    for (head, sub) in
        [("lisa", "lisa doctor"), ("lisa session", "session kill-all"), ("lisa agent", "build-cmd")]
    {
        assert!(sandbox.value(head).as_str().unwrap().contains(sub), "{head}");
    }
}

#[test]
fn the_plugin_can_be_added_to_and_used_from_a_registry() {
    let sandbox = needs!(Sandbox::new());
    let nu = |script: &str| {
        std::process::Command::new(crate::sandbox::nushell().unwrap())
            .args(["-n", "-c", script])
            .env_clear()
            .envs(sandbox.env())
            .current_dir(sandbox.work())
            .output()
            .unwrap()
    };
    let added = nu(&format!("plugin add --plugin-config plugins.msgpackz {}", crate::sandbox::PLUGIN));
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let used = nu(
        "plugin use --plugin-config plugins.msgpackz lisa; plugin list | where name == lisa | get 0.version",
    );
    assert_eq!(String::from_utf8_lossy(&used.stdout).trim(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn the_module_loads_and_its_commands_have_descriptions() {
    let sandbox = needs!(Sandbox::new());
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/lisa.nu");
    let found = sandbox.value(&format!(
        "use {module} *
         scope commands | where type == custom and name starts-with 'lisa ' | select name description | sort-by name"
    ));
    let names: Vec<_> =
        found.as_array().unwrap().iter().map(|command| command["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["lisa dashboard", "lisa prompt-segment", "lisa waiting"]);
    assert!(found.as_array().unwrap().iter().all(|command| command["description"] != ""));
}

#[test]
fn a_helper_call_does_not_wait_for_a_shell() {
    let ran =
        std::process::Command::new(crate::sandbox::PLUGIN).args(["helper", "no-such-verb"]).output().unwrap();
    assert!(!ran.status.success());
    assert!(ran.stdout.is_empty(), "a helper never speaks the plugin protocol");
}
