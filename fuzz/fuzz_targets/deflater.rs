//! libFuzzer's entry to the target `deflater`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::deflater(data));
