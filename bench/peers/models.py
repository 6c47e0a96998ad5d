"""The models of `ingot models` in PyTorch, at full size with random weights: torchvision's and Hugging Face's own, the others written here."""
import torch
from torch import nn
from torch.nn import functional as F


class Output(nn.Module):
    """A model of Hugging Face that gives one of its outputs alone, and keeps no keys and values."""

    def __init__(self, model, output):
        super().__init__()
        self.model, self.output = model, output

    def forward(self, ids):
        return self.model(ids, use_cache=False, return_dict=True)[self.output]


class NextToken(nn.Module):
    """A model of Hugging Face that reads one token behind those whose keys and values are given, layer by layer, first all keys.

    It gives the logits alone: what an engine would do to hand the longer keys and values back is spared it.
    """

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, *past):
        import transformers

        cache, layers = transformers.DynamicCache(), len(past) // 2
        for layer in range(layers):
            cache.update(past[layer], past[layers + layer], layer)
        return self.model(ids, past_key_values=cache, use_cache=True, return_dict=True).logits

    @staticmethod
    def for_file(inputs):
        """Ingot's caches have room for the token's own keys and values, which it writes in place."""
        return [inputs[0], *(F.pad(x, (0, 0, 0, 1)) for x in inputs[1:])]


class ResidualBlock(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, channels), nn.Conv2d(channels, out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, out), nn.Conv2d(out, out, 3, padding=1)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x):
        return self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x)))))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 3, 3, padding=1)
        self.down1, self.down2, self.mid = ResidualBlock(64, 64), ResidualBlock(64, 128), ResidualBlock(128, 256)
        self.attn_norm, self.attn_qkv, self.attn_out = nn.GroupNorm(4, 256), nn.Conv2d(256, 768, 1), nn.Conv2d(256, 256, 1)
        self.up2, self.up1 = ResidualBlock(256 + 128, 128), ResidualBlock(128 + 64, 64)

    def attention(self, x):
        n, c, h, w = x.shape
        q, k, v = self.attn_qkv(self.attn_norm(x)).view(n, 3, 4, c // 4, h * w).transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(n, c, h, w)
        return x + self.attn_out(y)

    def forward(self, x):
        a = self.down1(self.stem(x))
        b = self.down2(F.avg_pool2d(a, 2))
        z = self.attention(self.mid(F.avg_pool2d(b, 2)))
        y = self.up2(torch.cat([F.interpolate(z, scale_factor=2), b], 1))
        return self.head(self.up1(torch.cat([F.interpolate(y, scale_factor=2), a], 1)))


class LSTMLanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.out = nn.Embedding(10000, 512), nn.LSTM(512, 512, 2, batch_first=True), nn.Linear(512, 10000)

    def forward(self, ids):
        return self.out(self.lstm(self.embedding(ids))[0])


def mlp(*sizes):
    layers = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return layers[:-1]


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(*mlp(13, 512, 256, 64), nn.ReLU())
        self.tables = nn.ModuleList(nn.EmbeddingBag(10000, 64, mode="sum") for _ in range(26))
        self.top = nn.Sequential(*mlp(64 + 27 * 26 // 2, 512, 256, 1))
        row, column = torch.tril_indices(27, 27, -1)
        self.register_buffer("pairs", row * 27 + column, persistent=False)

    @staticmethod
    def bag(table, rows):
        """ONNX has no bags: exported, they are loops over sequences, which OpenVINO does not read."""
        return F.embedding(rows, table.weight).sum(1) if torch.compiler.is_exporting() else table(rows)

    def forward(self, numbers, categories):
        vectors = [self.bottom(numbers)] + [self.bag(table, categories[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack(vectors, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)[:, self.pairs]
        return self.top(torch.cat([vectors[0], products], 1))


def _torchvision(name):
    def make(batch, _):
        import torchvision

        if name == "vit":
            model = torchvision.models.VisionTransformer(224, 16, 12, 6, 384, 1536)
            nn.init.normal_(model.heads.head.weight, std=0.02)  # torchvision's is zero
        else:
            model = torchvision.models.get_model(name, weights=None)
        for module in model.modules():  # as after training: what a batch norm takes off is not nothing
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        return model, (torch.randn(batch, 3, 224, 224),)
    return make


def _hugging_face(family, kind, output, vocabulary, **sizes):
    def make(batch, length):
        import transformers

        model = getattr(transformers, kind)(transformers.AutoConfig.for_model(family, **sizes))
        return Output(model, output), (torch.randint(0, vocabulary, (batch, length or 128)),)
    return make


LLAMA = dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4)


def _llama_decode(batch, length):
    import transformers

    model = transformers.LlamaForCausalLM(transformers.AutoConfig.for_model("llama", **LLAMA))
    past = [torch.randn(batch, 4, length or 128, 64) for _ in range(2 * LLAMA["num_hidden_layers"])]
    return NextToken(model), (torch.randint(0, 32000, (batch, 1)), *past)


MODELS = {
    **{name: _torchvision(name) for name in ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vit"]},
    "unet": lambda batch, _: (UNet(), (torch.randn(batch, 3, 64, 64),)),
    "bert": _hugging_face("bert", "BertModel", "last_hidden_state", 30522),
    "gpt2": _hugging_face("gpt2", "GPT2LMHeadModel", "logits", 50257),
    "llama": _hugging_face("llama", "LlamaForCausalLM", "logits", 32000, **LLAMA),
    "llama_decode": _llama_decode,  # `length` tokens before the one that is read
    "lstm_lm": lambda batch, length: (LSTMLanguageModel(), (torch.randint(0, 10000, (batch, length or 64)),)),
    "dlrm": lambda batch, _: (DLRM(), (torch.randn(batch, 13), torch.randint(0, 10000, (batch, 26, 1)))),
    "mlp_tiny": lambda batch, _: (nn.Sequential(*mlp(16, 64, 64, 4)), (torch.randn(batch, 16),)),
}


def model_and_inputs(name, batch, length):
    """`length`: tokens of each row, or None for the usual. The same of each call."""
    torch.manual_seed(0)
    model, inputs = MODELS[name](batch, length)
    return model.eval(), inputs


def weights(model):
    """Under the names of Ingot's files."""
    own = model.model if isinstance(model, Output | NextToken) else model
    return {f"weight/{key}": value.clone() for key, value in own.state_dict().items()}


def inputs_of_file(model, inputs):
    """As Ingot takes them."""
    return model.for_file(inputs) if hasattr(model, "for_file") else inputs


def in_double(model, inputs):
    return model.double()(*(x.double() if x.is_floating_point() else x for x in inputs))
