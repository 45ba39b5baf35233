//! libFuzzer's entry to the target `message_dataspace`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tensilo_fuzz::message_dataspace(data));
