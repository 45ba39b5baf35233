//! libFuzzer's entry to the target `szip`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::szip(data));
