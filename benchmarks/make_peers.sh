#!/bin/sh
# Create the environments of the peers that encrypted.py measures, in benchmarks/.venvs: crypten, spu, tf_encrypted.
# Usage: benchmarks/make_peers.sh [crypten] [spu] [tf_encrypted]
# PYTHON (3.11) runs CrypTen and SPU, PYTHON_3_9 tf-encrypted: no later Python has the TensorFlow that it needs.
set -eu

venvs=$(dirname "$0")/.venvs
python=${PYTHON:-python3.11}
python_3_9=${PYTHON_3_9:-"$HOME/.pyenv/versions/3.9.18/bin/python"}

install() { # PEER PYTHON REQUIREMENT...
  peer=$1 interpreter=$2
  shift 2
  "$interpreter" -m venv --clear "$venvs/$peer"
  "$venvs/$peer/bin/python" -m pip install --disable-pip-version-check --quiet "$@"
}

for peer in "${@:-crypten spu tf_encrypted}"; do
  case $peer in
    crypten)
      install crypten "$python" torch==2.13.0 numpy "omegaconf>=2.3" pyyaml onnx
      # Without dependencies: it asks for `sklearn`, which cannot be installed, and for torchvision and others it does not need here.
      "$venvs/crypten/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps crypten==0.4.1
      ;;
    spu) install spu "$python" spu==0.9.5 ;;
    tf_encrypted) install tf_encrypted "$python_3_9" tensorflow-cpu==2.9.1 "numpy<2" "protobuf<3.20" tf-encrypted==0.9.1 ;;
    *) echo "make_peers.sh: unknown peer $peer" >&2; exit 2 ;;
  esac
done
