/* A library as others are: it takes all the room that the C library keeps for thread-local storage of libraries that
   are opened late. */
static __thread char large[GREEDY_BYTES] __attribute__((tls_model("initial-exec")));
char* greedy_memory(void) { return large; }
