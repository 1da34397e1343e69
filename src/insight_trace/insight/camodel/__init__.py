"""The core model's dump logs: read without CANN, and written so that the vendor's exporter can read ours."""
