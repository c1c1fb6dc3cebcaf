//! One instance of a template that no table has, compiled alone. It takes Rust's library source, as all kernels do.

use gpu_kernels_builder::{Arch, Assembly, BuildError, Instance, Instances, entries};

fn instances() -> Instances {
    let crate_dir = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/generated");
    let instances = Instances::new(crate_dir, folder, Arch::Sm90);
    instances
        .expect("a compiler with its library source, which the kernels need too")
        .assembly(Assembly::Skipped)
}

#[test]
fn an_instance_that_no_table_has_is_one_entry_and_what_is_no_instance_is_told() {
    let instances = instances();
    let small = Instance {
        entry: "qr_lanes_f32_4_8".into(),
        arguments: "crate::qr::QrArgs<'a, f32>".into(),
        body: "crate::qr::lanes::lanes::<_, f32, 4, 8>".into(),
    };
    let generated = instances.compile(&small).expect("a small kernel");
    assert_eq!(entries(&generated.ptx), ["qr_lanes_f32_4_8"]);
    assert_eq!(generated.resources, None, "nobody assembled it");
    let refused = instances.compile(&Instance {
        body: "crate::qr::lanes::lanes::<_, f32, 4>".into(),
        ..small
    });
    match refused {
        Err(BuildError::Compile { .. }) => {}
        other => panic!("{other:?}"),
    }
}
