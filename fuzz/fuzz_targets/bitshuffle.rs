//! libFuzzer's entry to the target `bitshuffle`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::bitshuffle(data));
