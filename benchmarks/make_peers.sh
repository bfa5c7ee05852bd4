#!/bin/sh
# Create the environments of the peers that encrypted.py (crypten, spu, tf_encrypted) and federated.py (pfl, flower) measure.
# They are in benchmarks/.venvs, or in the folder PEERS, which both need too.
# Usage: benchmarks/make_peers.sh [crypten] [spu] [tf_encrypted] [pfl] [flower]
# PYTHON (3.11) runs CrypTen and SPU, PYTHON_3_9 tf-encrypted: no later Python has the TensorFlow that it needs.
set -eu

venvs=${PEERS:-$(dirname "$0")/.venvs}
python=${PYTHON:-python3.11}
python_3_9=${PYTHON_3_9:-"$HOME/.pyenv/versions/3.9.18/bin/python"}
[ $# -gt 0 ] || set -- crypten spu tf_encrypted pfl flower

create() { # PEER PYTHON
  "$2" -m venv --clear "$venvs/$1"
}

install() { # PEER ARGUMENT...
  peer=$1
  shift
  "$venvs/$peer/bin/python" -m pip install --disable-pip-version-check --quiet "$@"
}

for name in "$@"; do
  case $name in
    crypten)
      create crypten "$python"
      install crypten torch==2.13.0 numpy "omegaconf>=2.3" pyyaml
      # Without dependencies: it asks for `sklearn`, which cannot be installed, and for others that it does not need here.
      install crypten --no-deps crypten==0.4.1
      ;;
    spu)
      create spu "$python"
      install spu spu==0.9.5
      ;;
    tf_encrypted)
      create tf_encrypted "$python_3_9"
      install tf_encrypted tensorflow-cpu==2.9.1 "numpy<2" "protobuf<3.20" pyyaml
      # Without dependencies: it asks for TensorFlow with CUDA and for tf2onnx.
      install tf_encrypted --no-deps tf-encrypted==0.9.1
      ;;
    pfl)
      create pfl "$python"
      install pfl torch==2.13.0 "pfl[pytorch]==0.6.0"
      ;;
    flower)
      create flower "$python"
      install flower torch==2.13.0 "flwr[simulation]==1.41.0"
      ;;
    *)
      echo "make_peers.sh: unknown peer $name" >&2
      exit 2
      ;;
  esac
done
