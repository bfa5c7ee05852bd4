"""Third-party programs: models from small configurations, without downloads, and data from scikit-learn."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

Batch = dict[str, torch.Tensor]


def declare_torchvision_operators() -> torch.library.Library | None:
    """Declare the operators that torchvision imports, if its kernels, built for another torch, cannot be loaded."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None:
        return None
    try:
        torch.ops.load_library(str(Path(spec.submodule_search_locations[0]) / "_C.so"))
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return None


_library = declare_torchvision_operators()


@dataclass(frozen=True)
class Program:
    """A model, a batch of data for it, and the loss that is minimized."""

    name: str
    package: str
    build: Callable[[], nn.Module]
    batch: Callable[[], Batch]
    loss: Callable[[nn.Module, Batch], torch.Tensor]


def of_transformers(model: nn.Module, batch: Batch) -> torch.Tensor:
    return model(**batch).loss


def of_classifier(model: nn.Module, batch: Batch) -> torch.Tensor:
    return nn.functional.cross_entropy(model(batch["x"]), batch["y"])


def text(masked: bool = True, labels: int | None = 2) -> Callable[[], Batch]:
    """Return a batch of token ids; the second text is shorter, unless there is no mask."""

    def make() -> Batch:
        ids = torch.randint(3, 90, (2, 12))
        batch = {"input_ids": ids}
        if masked:
            mask = torch.ones(2, 12, dtype=torch.long)
            mask[1, 9:] = 0
            batch["attention_mask"] = mask
        batch["labels"] = ids.clone() if labels is None else torch.randint(0, labels, (2,))
        return batch

    return make


def pixels(size: int, name: str = "x", target: str = "y") -> Callable[[], Batch]:
    return lambda: {name: torch.randn(2, 3, size, size), target: torch.randint(0, 5, (2,))}


def digits() -> Batch:
    from sklearn.datasets import load_digits  # noqa: PLC0415

    found = load_digits()
    return {"x": torch.tensor(found.data[:64], dtype=torch.float32) / 16, "y": torch.tensor(found.target[:64])}


def programs() -> Iterator[Program]:
    yield Program("MLP on digits", "sklearn", mlp, digits, of_classifier)
    yield from transformers_programs()
    yield from vision_programs()


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 100,
    "max_position_embeddings": 64,
}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 100, "n_positions": 64}


def make_model(name: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    """Return a function that builds a model of transformers."""

    def build() -> nn.Module:
        transformers = import_module("transformers")
        return getattr(transformers, name)(getattr(transformers, config)(**options)).train()

    return build


small_bert = make_model("BertForSequenceClassification", "BertConfig", **SMALL)
small_gpt = make_model("GPT2LMHeadModel", "GPT2Config", **GPT, bos_token_id=1, eos_token_id=2)


def transformers_programs() -> Iterator[Program]:
    small, gpt, model = SMALL, GPT, make_model

    def program(name: str, build: Callable[[], nn.Module], batch: Callable[[], Batch]) -> Program:
        return Program(name, "transformers", build, batch, of_transformers)

    yield program("BERT", small_bert, text())
    yield program("BERT without a mask", small_bert, text(masked=False))
    distil = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "vocab_size": 100}
    yield program("DistilBERT", model("DistilBertForSequenceClassification", "DistilBertConfig", **distil), text())
    yield program("RoBERTa", model("RobertaForSequenceClassification", "RobertaConfig", **small), text())
    image = {**small, "image_size": 32, "patch_size": 8, "num_labels": 5}
    image = {name: value for name, value in image.items() if name not in ("vocab_size", "max_position_embeddings")}
    yield program("ViT", model("ViTForImageClassification", "ViTConfig", **image), pixels(32, "pixel_values", "labels"))
    yield program("GPT-2", model("GPT2LMHeadModel", "GPT2Config", **gpt), text(labels=None))
    yield program("GPT-2 without a mask", model("GPT2LMHeadModel", "GPT2Config", **gpt), text(False, None))
    decoder = {**small, "num_key_value_heads": 1}
    yield program("Llama", model("LlamaForCausalLM", "LlamaConfig", **decoder), text(labels=None))
    yield program("Llama without a mask", model("LlamaForCausalLM", "LlamaConfig", **decoder), text(False, None))
    yield program(
        "Mistral", model("MistralForCausalLM", "MistralConfig", **decoder, sliding_window=8), text(labels=None)
    )
    albert = {**small, "embedding_size": 8}
    yield program("ALBERT", model("AlbertForSequenceClassification", "AlbertConfig", **albert), text())
    relative = {**small, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    yield program("DeBERTa", model("DebertaForSequenceClassification", "DebertaConfig", **relative), text())
    yield program("MPNet", model("MPNetForSequenceClassification", "MPNetConfig", **small), text())
    fnet = {name: value for name, value in small.items() if name != "num_attention_heads"}
    yield program("FNet", model("FNetForSequenceClassification", "FNetConfig", **fnet), text(masked=False))
    yield program("Qwen2", model("Qwen2ForCausalLM", "Qwen2Config", **decoder), text(labels=None))
    bloom = {"vocab_size": 100, "hidden_size": 16, "n_layer": 2, "n_head": 2}
    yield program("BLOOM", model("BloomForCausalLM", "BloomConfig", **bloom), text(labels=None))
    mamba = {"vocab_size": 100, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}
    yield program("Mamba", model("MambaForCausalLM", "MambaConfig", **mamba), text(False, None))
    mamba |= {"num_heads": 4, "head_dim": 8, "n_groups": 1, "chunk_size": 4}
    yield program("Mamba-2", model("Mamba2ForCausalLM", "Mamba2Config", **mamba), text(False, None))
    yield program("Cohere", model("CohereForCausalLM", "CohereConfig", **small), text(False, None))
    t5 = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "vocab_size": 100}
    t5 |= {"decoder_start_token_id": 0, "pad_token_id": 0}
    yield program("T5", model("T5ForConditionalGeneration", "T5Config", **t5), text(labels=None))


def vision_programs() -> Iterator[Program]:
    def torchvision(name: str, **options: Any) -> Callable[[], nn.Module]:
        return lambda: getattr(import_module("torchvision.models"), name)(weights=None, num_classes=5, **options)

    def timm(name: str, **options: Any) -> Callable[[], nn.Module]:
        return lambda: import_module("timm").create_model(name, pretrained=False, num_classes=5, **options)

    def program(name: str, package: str, build: Callable[[], nn.Module], size: int = 32) -> Program:
        return Program(name, package, build, pixels(size), of_classifier)

    yield program("ResNet-18", "torchvision", torchvision("resnet18"))
    yield program("DenseNet with checkpoints", "torchvision", checkpointed_densenet)
    yield program("EfficientNet-B0", "torchvision", torchvision("efficientnet_b0"))
    swin = {"patch_size": [4, 4], "embed_dim": 12, "depths": [2, 2], "num_heads": [2, 2], "window_size": [4, 4]}
    yield program("Swin", "torchvision", lambda: _swin(**swin))
    yield program("MobileNetV3", "timm", timm("mobilenetv3_small_050"))
    yield program(
        "ViT (timm)",
        "timm",
        timm("vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2),
    )
    yield program("patches with einops", "einops", patches)


def checkpointed_densenet() -> nn.Module:
    from torchvision.models import DenseNet  # noqa: PLC0415

    return DenseNet(8, (2, 2), 8, num_classes=5, memory_efficient=True)


def _swin(**options: Any) -> nn.Module:
    from torchvision.models.swin_transformer import SwinTransformer  # noqa: PLC0415

    return SwinTransformer(num_classes=5, stochastic_depth_prob=0.1, **options)


def patches() -> nn.Module:
    from einops.layers.torch import Rearrange, Reduce  # noqa: PLC0415

    return nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=8, q=8),
        nn.Linear(192, 16),
        nn.GELU(),
        Reduce("b n d -> b d", "mean"),
        nn.Linear(16, 5),
    )


# --- language models with a mask, as functions of two tensors


class Classifier(nn.Module):
    """A model of transformers that gives one row of numbers for each text."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        found = self.model(input_ids=ids, attention_mask=mask).logits
        return found[:, -1] if found.dim() == 3 else found


def make_language_model(name: str, config: str, sizes: dict[str, int]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        package = import_module("transformers")
        tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
        return Classifier(getattr(package, name)(getattr(package, config)(vocab_size=64, **tokens, **sizes)))

    return make


_BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def make_lora() -> nn.Module:
    peft = import_module("peft")
    model = make_language_model("BertForSequenceClassification", "BertConfig", _BERT)().model
    return Classifier(peft.get_peft_model(model, peft.LoraConfig(target_modules=["query", "value"], r=2)))


LANGUAGE_MODELS: dict[str, Callable[[], nn.Module]] = {
    "bert": make_language_model("BertForSequenceClassification", "BertConfig", _BERT),
    "distilbert": make_language_model(
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32},
    ),
    "gpt2": make_language_model("GPT2LMHeadModel", "GPT2Config", {"n_embd": 16, "n_layer": 1, "n_head": 2}),
    "llama": make_language_model("LlamaForCausalLM", "LlamaConfig", {**_BERT, "num_key_value_heads": 1}),
    "lora": make_lora,
}


def masked_text() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the ids of four texts, of which two are shorter, the mask, and their classes."""
    source = torch.Generator().manual_seed(0)
    mask = torch.ones(4, 8, dtype=torch.long)
    mask[1, 5:] = mask[3, 2:] = 0
    return torch.randint(3, 64, (4, 8), generator=source), mask, torch.tensor([0, 1, 1, 0])
