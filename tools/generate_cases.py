#!/usr/bin/env python3
"""Makes tests/data/generate: small language models in the form that Hugging Face's `save_pretrained` leaves, with what
`tokenizers` and `transformers` make of texts and how the models go on. Needs torch, transformers and tokenizers.

  tools/generate_cases.py
"""
import json
import pathlib
import shutil

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/data/generate"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
TEXTS = ["", " ", "Once upon a time", "  two  blanks\n\n\nand lines \t tabs  ", "don't they'll I'M WE'RE it's'", "a" * 300,
         "1234567 3.14159 ２０２６ ½ Ⅷ", "Größe, façade, naïve; Ærøskøbing", "你好，世界。 こんにちは", "Привет, мир! שלום",
         "emoji 🙂👩‍👩‍👧 and flags 🇩🇪", "a<|endoftext|>b <|endoftext|>", "x <sep> y<sep>  z", "<|endoftext", "e\u0301 \u00a0\u2003 \u0085 x",
         "\r\n\r\n  end of lines \r", "if (x != y) { return a->b[3] += 'c'; }  // ---- ****", "\u200b\ufeff\u0000 odd", "the the the  the"]


def tokenizer_of(kind, text):
    tokenizer = Tokenizer(models.BPE())
    if kind == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        special = ["<|endoftext|>"]
    elif kind == "prefixed":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        special = ["<|endoftext|>"]
    else:
        tokenizer = Tokenizer(models.BPE(ignore_merges=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        special = ["<|begin_of_text|>", "<|endoftext|>"]
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_tokens([AddedToken("<sep>", lstrip=True, rstrip=True)])
    if kind == "llama":
        bos = special[0]
        tokenizer.post_processor = processors.Sequence(
            [processors.ByteLevel(trim_offsets=False),
             processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])])
    return tokenizer


def model_of(kind, size):
    torch.manual_seed(7)
    if kind == "gpt2":
        config = GPT2Config(vocab_size=size, n_positions=48, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
                            initializer_range=0.2)
        return GPT2LMHeadModel(config)
    config = LlamaConfig(vocab_size=size, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=48, rope_theta=500000.0, rms_norm_eps=1e-5,
                         bos_token_id=0, eos_token_id=1, initializer_range=0.2)
    return LlamaForCausalLM(config)


def main():
    text = (ROOT / "examples/data/text.txt").read_text()[:100000]
    shutil.rmtree(FOLDER, ignore_errors=True)
    for kind in ("gpt2", "llama", "prefixed"):
        folder = FOLDER / kind
        folder.mkdir(parents=True)
        tokenizer = tokenizer_of(kind, text)
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        cases = []
        for t in TEXTS + [text[5000:6000]]:
            ids = tokenizer.encode(t).ids
            cases.append({"text": t, "ids": ids, "plain": tokenizer.encode(t, add_special_tokens=False).ids,
                          "decoded": tokenizer.decode(ids, skip_special_tokens=True),
                          "decoded_special": tokenizer.decode(ids, skip_special_tokens=False)})
        # Tokens in any order: parts of characters among them.
        generator = torch.Generator().manual_seed(3)
        odd = torch.randint(0, tokenizer.get_vocab_size(), (200,), generator=generator).tolist()
        expected = {"texts": cases, "odd": {"ids": odd, "decoded": tokenizer.decode(odd, skip_special_tokens=True)}}
        if kind != "prefixed":
            model = model_of(kind, tokenizer.get_vocab_size()).eval()
            if kind == "llama":  # in parts, and in half the precision
                model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="30KB")
                model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
            else:
                model.save_pretrained(folder)
            prompt = tokenizer.encode("First Citizen: we are").ids
            ids = torch.tensor([prompt])
            with torch.no_grad():
                made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0)
                logits = model.double()(made[:, :-1]).logits[0, len(prompt) - 1:]
                assert logits.argmax(1).tolist() == made[0, len(prompt):].tolist(), kind
                top = logits.topk(2).values
            # Where two tokens are as likely, rounding would choose.
            assert (top[:, 0] - top[:, 1]).min() > 1e-4, (kind, (top[:, 0] - top[:, 1]).min())
            expected["greedy"] = {"prompt": prompt, "tokens": made[0, len(prompt):].tolist(),
                                  "logits": logits[-1].tolist()}
        (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
