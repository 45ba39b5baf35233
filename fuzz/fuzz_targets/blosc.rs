//! libFuzzer's entry to the target `blosc`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::blosc(data));
