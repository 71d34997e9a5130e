// SPDX-License-Identifier: Apache-2.0
//! One round of a scheduler and a live run from Rust, over the C interface; bindgen would write the
//! declarations. Usage: rustc from_rust.rs -l glidepath && ./from_rust
use std::ffi::{c_char, CStr};
use std::ptr::null;

#[repr(C)]
struct WatchOptions {
    size: usize,
    target: *const f64,
    budget: *const f64,
    direction: *const c_char,
    reached_by: *const c_char,
    alpha: f64,
    past: *const u8,
    schedule: *const u8,
}

#[repr(C)]
struct Decision {
    size: usize,
    verdict: *const c_char,
    probability: f64,
    steps_to_target: [f64; 3],
    reason: *const c_char,
}

#[link(name = "glidepath")]
extern "C" {
    fn glidepath_last_error() -> *const c_char;
    fn glidepath_watch(options: *const WatchOptions, watch: *mut *mut u8) -> i32;
    fn glidepath_watch_add(watch: *mut u8, step: f64, loss: f64, lr: f64) -> i32;
    fn glidepath_watch_decision(watch: *mut u8, decision: *mut Decision) -> i32;
    fn glidepath_watch_free(watch: *mut u8);
    fn glidepath_gittins_index(samples: *const f64, count: usize, index: *mut f64) -> i32;
}

fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn checked(status: i32) -> Result<(), String> {
    match status {
        0 => Ok(()),
        _ => Err(text(unsafe { glidepath_last_error() })),
    }
}

fn verdict(losses: &[f64], target: f64, budget: f64) -> Result<String, String> {
    let options = WatchOptions {
        size: std::mem::size_of::<WatchOptions>(),
        target: &target,
        budget: &budget,
        direction: null(),
        reached_by: null(),
        alpha: 0.0,
        past: null(),
        schedule: null(),
    };
    let mut decision: Decision = unsafe { std::mem::zeroed() };
    decision.size = std::mem::size_of::<Decision>();
    unsafe {
        let mut watch = std::ptr::null_mut();
        checked(glidepath_watch(&options, &mut watch))?;
        let mut answer = Ok(());
        for (i, loss) in losses.iter().enumerate() {
            answer = answer.and(checked(glidepath_watch_add(watch, i as f64 + 1.0, *loss, f64::NAN)));
        }
        answer = answer.and(checked(glidepath_watch_decision(watch, &mut decision)));
        let found = answer.map(|()| text(decision.verdict));
        glidepath_watch_free(watch);
        found
    }
}

fn main() -> Result<(), String> {
    let losses: Vec<f64> = (1..=60).map(|t| 1.0 + 2.0 / (t as f64).sqrt()).collect();
    println!("loss 1.1 by step 1000: {}", verdict(&losses, 1.1, 1000.0)?);
    println!("loss 0.9 by step 1000: {}", verdict(&losses, 0.9, 1000.0)?);
    let refused = verdict(&losses, f64::NAN, 1000.0).unwrap_err();
    println!("a target of NaN: {refused}");

    let samples = [10.0, 20.0, f64::INFINITY];
    let mut index = 0.0;
    checked(unsafe { glidepath_gittins_index(samples.as_ptr(), samples.len(), &mut index) })?;
    println!("gittins index {index}");
    Ok(())
}
