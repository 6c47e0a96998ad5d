"""Opens each library given, in turn, as a Python extension would be; calls plugin_check of those that have one."""
import ctypes
import sys

opened = []
for path in sys.argv[1:]:
    library = ctypes.CDLL(path)
    opened.append(library)
    if hasattr(library, "plugin_check"):
        result = library.plugin_check()
        if result:
            sys.exit(f"{path}: plugin_check returns {result}")
