//! libFuzzer's entry to the target `nbit`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::nbit(data));
