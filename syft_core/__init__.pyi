"""The types of the names in ``__init__.py``, for type checkers: there they are looked up when they are first used."""

import syft_mpc
import syft_ray
import syft_worker
from syft_core import cli as cli
from syft_core import conditions as conditions
from syft_core import demo as demo
from syft_core import departures as departures
from syft_core import display as display
from syft_core import exceptions as exceptions
from syft_core import features as features
from syft_core import files as files
from syft_core import hook as hook
from syft_core import ids as ids
from syft_core import kinds as kinds
from syft_core import ledgers as ledgers
from syft_core import location as location
from syft_core import messages as messages
from syft_core import network as network
from syft_core import notebooks as notebooks
from syft_core import packages as packages
from syft_core import peer as peer
from syft_core import pictures as pictures
from syft_core import plans as plans
from syft_core import plugin as plugin
from syft_core import plugins as plugins
from syft_core import pointers as pointers
from syft_core import printing as printing
from syft_core import registry as registry
from syft_core import serde as serde
from syft_core import tensors as tensors
from syft_core import testing as testing
from syft_core import values as values
from syft_core import workers as workers
from syft_core.hook import hook_args as hook_args
from syft_core.hook.attributes import FrameworkAttributes as _FrameworkAttributes
from syft_core.hook.hook import FrameworkHook as FrameworkHook
from syft_core.hook.hook import current_hook as current_hook
from syft_core.hook.overload import overloaded as overloaded
from syft_core.network import aio as aio
from syft_core.network.client import WebsocketClientWorker as WebsocketClientWorker
from syft_core.network.client import connect as connect
from syft_core.network.websocket_worker import WebsocketServerWorker as _WebsocketServerWorker
from syft_core.notebooks import tracebacks as tracebacks
from syft_core.plans.plan import Plan as Plan
from syft_core.plans.plan import func2plan as func2plan
from syft_core.plans.pointer import PointerPlan as PointerPlan
from syft_core.plugins.manager import load_backend as load_backend
from syft_core.pointers.callable_pointer import CallablePointer as CallablePointer
from syft_core.pointers.callable_pointer import ObjectWrapper as ObjectWrapper
from syft_core.pointers.callable_pointer import create_callable_pointer as create_callable_pointer
from syft_core.pointers.multi_pointer import MultiPointerTensor as MultiPointerTensor
from syft_core.pointers.multi_pointer import combine_pointers as combine_pointers
from syft_core.pointers.object_pointer import ObjectPointer as ObjectPointer
from syft_core.pointers.pointer_tensor import PointerTensor as PointerTensor
from syft_core.pointers.revealing import revealing as revealing
from syft_core.pointers.travel import get_all as get_all
from syft_core.tensors.abstract import AbstractTensor as AbstractTensor
from syft_core.tensors.identity import ID_PROVIDER as ID_PROVIDER
from syft_core.tensors.logging import LoggingTensor as LoggingTensor
from syft_core.tensors.plus_is_minus import PlusIsMinusTensor as PlusIsMinusTensor
from syft_core.tensors.polynomial import PolynomialTensor as PolynomialTensor
from syft_core.tensors.private import PrivateTensor as PrivateTensor
from syft_core.tensors.schema import Column as Column
from syft_core.tensors.schema import Schema as Schema
from syft_core.workers.party.base import BaseWorker as _BaseWorker
from syft_core.workers.party.virtual import VirtualWorker as _VirtualWorker
from syft_core.workers.seeing.permissions import nothing as nothing
from syft_core.workers.seeing.permissions import only_published as only_published
from syft_core.workers.seeing.permissions import unless_private as unless_private
from syft_core.workers.seeing.trace import trace as trace
from syft_mpc.additive_shared import AdditiveSharingTensor as AdditiveSharingTensor
from syft_mpc.authenticated_tensor import AuthenticatedTensor as AuthenticatedTensor
from syft_mpc.checking import PrecisionWarning as PrecisionWarning
from syft_mpc.checking import checking as checking
from syft_mpc.fixed_precision import FixedPrecisionTensor as FixedPrecisionTensor
from syft_numpy.hook import NumpyHook as NumpyHook
from syft_ray.workers import RayWorkers as RayWorkers
from syft_sums.studies import Studies as WorkerStudies
from syft_torch.federated.dataloader import FederatedDataLoader as FederatedDataLoader
from syft_torch.federated.dataset import BaseDataset as BaseDataset
from syft_torch.federated.dataset import FederatedDataset as FederatedDataset
from syft_torch.hook import TorchHook as TorchHook
from syft_worker import desk as desk
from syft_worker.desk.handle import RequestHandle as RequestHandle
from syft_worker.desk.owner import WorkerDesk as WorkerDesk

crypto = syft_mpc
operating = syft_worker
ray = syft_ray

# With the types of their desk and of their studies.
class VirtualWorker(_VirtualWorker):
    @property
    def desk(self) -> WorkerDesk: ...
    @property
    def studies(self) -> WorkerStudies: ...

class WebsocketServerWorker(_WebsocketServerWorker):
    @property
    def desk(self) -> WorkerDesk: ...
    @property
    def studies(self) -> WorkerStudies: ...

__version__: str
local_worker: _BaseWorker
torch: _FrameworkAttributes
numpy: _FrameworkAttributes
