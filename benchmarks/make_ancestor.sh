#!/bin/sh
# Create benchmarks/.venvs/ancestor: PySyft 0.2.9 with torch 1.4 on Python 3.7.
# Usage: benchmarks/make_ancestor.sh [PYTHON_3_7]
set -eu

python=${1:-"$HOME/.pyenv/versions/3.7.16/bin/python"}
venv=$(dirname "$0")/.venvs/ancestor

"$python" -m venv --clear "$venv"
pip="$venv/bin/python -m pip install --disable-pip-version-check --quiet"

$pip torch==1.4.0 torchvision==0.5.0
# Without dependencies: syft asks for aiortc, which no longer builds; ancestor_hook.py puts stubs in its place.
$pip --no-deps syft==0.2.9 shaloop==0.2.1-alpha.11
$pip \
  "cffi~=1.15.1" \
  openmined.threepio==0.2.0 "dill~=0.3.1" "flask-socketio~=4.2.1" "Flask~=1.1.1" "importlib-resources~=1.5.0" \
  "lz4~=3.0.2" "msgpack~=1.0.0" "numpy~=1.18.1" "phe~=1.4.0" psutil "requests~=2.22.0" "RestrictedPython~=5.0" \
  requests-toolbelt==0.9.1 "scipy~=1.4.1" "syft-proto~=0.5.2" "tblib~=1.6.0" tornado==4.5.3 \
  "websocket-client~=0.57.0" "websockets~=8.1.0" \
  "jinja2<3" "markupsafe<2" "itsdangerous<2" "werkzeug<1.1" "protobuf<3.21"

echo "ready: python benchmarks/hook.py finds it in $venv"
