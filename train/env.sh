# Keeps freed memory inside the process. Otherwise every big tensor is mapped and page-faulted anew, which halves the
# speed.
export MALLOC_MMAP_THRESHOLD_=8589934592 MALLOC_TRIM_THRESHOLD_=8589934592 MALLOC_TOP_PAD_=268435456
export OMP_NUM_THREADS=1
