//! A model fitted to the curves of a simulated, so known, storage: its error on points that were kept out of the fit.

use capability::{Capability, Conditions, CostModel, Effort, HeldOut, Maximum, Origin};
use simulate::{Cost, Disk, Flash, Mechanics, Metered, PredictedModel, Storage, Time, curve, fit, predict};
use workload::{Backend, Caching, Cap, CapKind, Shape, TargetFacts, TargetKind};

const SWEEP: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn measured(storage: &Storage, shapes: &[Shape], caps: Vec<Cap>) -> Capability {
    let target = TargetFacts {
        path: "/data".into(),
        kind: TargetKind::Directory,
        filesystem: None,
        mount: None,
        free_bytes: 0,
        devices: Vec::new(),
        direct_align_bytes: Some(512),
        memory_align_bytes: 512,
        caps,
    };
    let conditions = Conditions {
        headroom_version: String::new(),
        kernel: String::new(),
        backend: Backend::IoUring,
        caching: Caching::Direct,
        region_bytes: 1 << 30,
        foreign_iops: None,
        took_s: 1.0,
        effort: Effort::Default,
        remarks: Vec::new(),
        target_changes: Vec::new(),
    };
    let curves = shapes.iter().map(|shape| curve(storage, shape, &SWEEP, 6_000).unwrap()).collect();
    Capability { target, measured_unix_ns: 0, conditions, curves, cost_model: None, origin: Origin::Measured }
}

/// Not of the family that is fitted: two stages and a long tail.
fn disk() -> Disk {
    let cost = |ns, tail| Cost {
        channel_byte_ns: 0.5,
        service: Time::Lognormal { median_ns: ns, sigma: tail },
        delay: Time::Exponential { mean_ns: 20e3 },
        ..Cost::default()
    };
    let flash = Flash { units: 12, stages: 1, duplex: false, read: cost(80e3, 0.4), write: cost(30e3, 0.8) };
    Disk::plain(1 << 30, Mechanics::Flash(flash))
}

#[test]
fn points_kept_out_of_the_fit_are_predicted() {
    let storage = Storage::single(disk());
    let shapes = [4096, 65_536].map(Shape::random_read);
    let mut all = shapes.to_vec();
    all.extend([4096, 65_536].map(Shape::random_write));
    all.push(Shape::random_read(4096).with_writes(30));
    let mut capability = measured(&storage, &all, Vec::new());
    // A size that no curve has, kept out by the measurement itself.
    let held = Shape::random_read(16_384);
    let most = curve(&storage, &held, &[256], 10_000).unwrap().iops_max().unwrap();
    let maximum = |shape| Maximum { workload: shape, iops: 1.0, iops_half_width: 0.1 };
    let model = CostModel::fit(&[maximum(shapes[0]), maximum(Shape::random_write(4096))], &[]).unwrap();
    let held_out = vec![HeldOut { workload: held, measured_iops: most, predicted_iops: 0.0 }];
    capability.cost_model = Some(CostModel { held_out, ..model });

    let fitted = fit(&capability).unwrap();
    let error = fitted.error.expect("points were kept out");
    assert!(error < 0.12, "{error}: {:#?}", fitted.held_out);
    assert!(fitted.held_out.iter().any(|held| held.workload.block_bytes == 16_384));
    assert!(
        fitted.held_out.len() >= 15 && fitted.trained >= 25,
        "{} and {}",
        fitted.held_out.len(),
        fitted.trained
    );

    // Three of them: predicted by the fit, and simulated with the true model.
    let model = PredictedModel { storage: &fitted.storage, commit: None, outstanding: None, ios: 6_000 };
    let three = predict(&model, &shapes[0], &"disks=3".parse().unwrap()).unwrap();
    let truth = Storage::array(&disk(), 3, workload::Layout::Stripe { unit_bytes: 65_536 });
    let truth = curve(&truth, &shapes[0], &SWEEP, 6_000).unwrap();
    let (found, wanted) = (three.after.knee.unwrap(), truth.knee.unwrap());
    assert!((found.iops / wanted.iops - 1.0).abs() < 0.1, "{} for {}", found.iops, wanted.iops);
    assert!((found.outstanding / wanted.outstanding - 1.0).abs() < 0.15, "{found:?} for {wanted:?}");
}

#[test]
fn a_cap_of_the_target_is_a_limit_of_the_model_and_no_property_of_its_disk() {
    let cap =
        Cap { kind: CapKind::ReadIops, per_second: 800, device: "7:0".into(), origin: "a cgroup".into() };
    let lun = Disk::flash(1 << 30, 16, Time::Fixed { ns: 20_000_000 }, Time::default());
    let capability = measured(&Storage::single(lun), &[Shape::random_read(65_536)], vec![cap]);
    let fitted = fit(&capability).unwrap();
    assert_eq!(fit(&capability).unwrap(), fitted, "the same again");
    let limit = fitted.storage.disks[0].limits[0];
    assert_eq!((limit.of, limit.per_second), (Metered::Reads, 800.0));
    assert!(fitted.error.unwrap() < 0.03, "{:?}", fitted.held_out);
    assert!(!fitted.not_covered.is_empty(), "writes were not measured, and that is said");
}

#[test]
fn a_capability_without_curves_is_an_error() {
    let lun = Storage::single(disk());
    assert!(fit(&measured(&lun, &[Shape::sequential_read(65_536)], Vec::new())).is_err());
}
