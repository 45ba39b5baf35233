//! libFuzzer's entry to the target `wire`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::wire(data));
