/* host LIBRARY...: opens each library in turn, closes it and opens it again, and calls the plugin_check of those that
   have one, from this thread and from one that was there before. Exit code 0 if all of it works. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

static sem_t wanted, ended;
static int (*check)(void);
static int result;

static void* serve(void* unused) {
  for (;;) {
    sem_wait(&wanted);
    result = check();
    sem_post(&ended);
  }
  return unused;
}

int main(int count, char** libraries) {
  pthread_t early;
  sem_init(&wanted, 0, 0);
  sem_init(&ended, 0, 0);
  if (pthread_create(&early, NULL, serve, NULL)) return 1;
  for (int i = 1; i < count; ++i) {
    void* library = NULL;
    for (int time = 0; time < 2; ++time) {
      if (library) dlclose(library);
      library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
      if (!library) {
        fprintf(stderr, "%s: %s\n", libraries[i], dlerror());
        return 1;
      }
      void* symbol = dlsym(library, "plugin_check");
      if (!symbol) continue;
      memcpy(&check, &symbol, sizeof check);
      result = check();
      if (result == 0) {
        sem_post(&wanted);
        sem_wait(&ended);
      }
      if (result) {
        fprintf(stderr, "%s: plugin_check returns %d\n", libraries[i], result);
        return 1;
      }
    }
  }
  return 0;
}
