"""FairPCA, how rows become what it is fitted to, and the file that keeps a fitted one."""
