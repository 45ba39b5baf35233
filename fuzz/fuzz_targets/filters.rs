//! libFuzzer's entry to the target `filters`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::filters(data));
