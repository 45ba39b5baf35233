//! The functions as C calls them, against streams that loaderx 0.5.0's library gave.
#![expect(unsafe_code, reason = "the functions take pointers")]

use sampler::ffi::{cdeinit, cinit, cnext};

#[test]
fn every_stream_equals_the_one_of_loaderx() {
    let text = include_str!("../../../loader/tests/fixtures/sampler_streams.json");
    let streams: serde_json::Value = serde_json::from_str(text).unwrap();
    let streams = streams.as_array().unwrap();
    assert!(streams.len() >= 44);
    for stream in streams {
        let number = |key: &str| stream[key].as_u64().unwrap_or_else(|| panic!("{key} in {stream}"));
        let mode = if stream["mode"] == "IID" { 1 } else { 0 };
        let batch = number("batch");
        let expected: Vec<u64> = match stream.get("first_two_batches") {
            Some(list) => list.as_array().unwrap().iter().map(|i| i.as_u64().unwrap()).collect(),
            None => stream["first_six_batches"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|b| b.as_array().unwrap().iter().map(|i| i.as_u64().unwrap()))
                .collect(),
        };
        let sampler = cinit(number("length"), batch, mode, stream["seed"].as_u64().unwrap_or(42));
        assert!(!sampler.is_null());
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let mut indices = vec![9; batch as usize];
            // SAFETY: the sampler is live, the array has that many numbers.
            unsafe { cnext(sampler, indices.as_mut_ptr(), indices.len()) };
            got.extend(indices);
        }
        // SAFETY: it is ended once.
        unsafe { cdeinit(sampler) };
        assert_eq!(got, expected, "{stream}");
    }
}

#[test]
fn no_records_and_unknown_modes_are_refused_and_null_does_nothing() {
    assert!(cinit(0, 4, 0, 42).is_null(), "loaderx dies of SIGFPE");
    assert!(cinit(0, 4, 1, 42).is_null());
    assert!(cinit(10, 4, 2, 42).is_null());
    // SAFETY: null is allowed.
    unsafe {
        cnext(std::ptr::null_mut(), [0].as_mut_ptr(), 1);
        cdeinit(std::ptr::null_mut());
    }
    let sampler = cinit(10, 4, 0, 42);
    // SAFETY: null is allowed for the array; the sampler is live and ended once.
    unsafe {
        cnext(sampler, std::ptr::null_mut(), 4);
        cdeinit(sampler);
    }
}
