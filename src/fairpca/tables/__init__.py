"""Tables: CSV, Parquet and Arrow files in batches of rows, and what becomes of their columns."""
