//! libFuzzer's entry to the target `scaleoffset`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::scaleoffset(data));
