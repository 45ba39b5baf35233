//! libFuzzer's entry to the target `shared_messages`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::shared_messages(data));
