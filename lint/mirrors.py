"""Which test file covers a module that has none of its own name, and why: read by `house_rules.py`.

Most stand here for one of two reasons: several small modules answer one contract, which one test holds them all to; or
a module is a part of another, and is tested through it. Whoever can test a module by itself writes its own file, and
drops it here.
"""

from __future__ import annotations

# (the test file, why, the modules)
ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("test_language_model.py", "verbs hand over to rooms, and are tested there", ("relating.py", "writing.py")),
    (
        "prompting/test_search.py",
        "a search, its likelihood, its template and what it finds are one thing",
        ("prompting/likelihood.py", "prompting/prompt.py", "prompting/template.py"),
    ),
    (
        "prompting/test_answering.py",
        "examples before a prompt and what came of asking, tested where they are asked",
        ("prompting/answers.py", "prompting/shots.py"),
    ),
    (
        "translation/test_translating.py",
        "what came of translating and the way there, tested where they are made",
        ("translation/translated.py", "translation/tracing.py"),
    ),
    (
        "scores/test_distilling.py",
        "a method that needs a model with a scorer, scored where one is made",
        ("scores/maskless.py",),
    ),
    ("bulk/test_job.py", "a job is begun, worked on and told of together", ("bulk/journal.py", "bulk/running.py")),
    # ---- one contract, one test
    (
        "family/test_published.py",
        "each published architecture is compared with the logits of its published code, one row each",
        (
            "family/gpt_bert.py",
            "family/llada2_moe.py",
            "family/llada_moe.py",
            "family/ltg_bert.py",
            "family/neobert.py",
        ),
    ),
    (
        "scores/test_conformance.py",
        "every method is held to its definition as plain loops, one row each",
        (
            "scores/causal.py",
            "scores/chain.py",
            "scores/elbo.py",
            "scores/pll.py",
            "scores/registry.py",
            "scores/unmasked.py",
            "scores/whole_word.py",
            "scores/word_l2r.py",
        ),
    ),
    (
        "joints/test_constructions.py",
        "every construction is held to its dense definition, one row each",
        (
            "joints/acceleration.py",
            "joints/ag.py",
            "joints/hcb.py",
            "joints/law.py",
            "joints/loglinear.py",
            "joints/mlm.py",
            "joints/mrf.py",
            "joints/mrf_local.py",
            "joints/order.py",
            "joints/registry.py",
            "joints/stationary.py",
            "joints/unaries.py",
        ),
    ),
    (
        "masks/test_laws.py",
        "the contract of all laws",
        ("masks/law.py", "masks/passages.py"),
    ),
    (
        "samplers/test_conformance.py",
        "the contract of all kernels, and what their steps are made of",
        ("samplers/kernel.py", "samplers/kernels/decoding.py"),
    ),
    (
        "constraints/test_propagation.py",
        "every constraint and what cuts by it, against brute force over all texts of small vocabularies",
        (
            "constraints/automaton_filter.py",
            "constraints/conflicts.py",
            "constraints/constraint.py",
            "constraints/lengths.py",
            "constraints/mask.py",
            "constraints/page.py",
            "constraints/patterns.py",
            "constraints/pieces.py",
            "constraints/placements.py",
            "constraints/predicates.py",
            "constraints/problem.py",
            "constraints/scope.py",
            "constraints/tables.py",
            "constraints/words.py",
        ),
    ),
    (
        "training/optimizers/test_optimizers.py",
        "all optimizers against their formulas, in float32 and with masters",
        (
            "training/optimizers/adamw.py",
            "training/optimizers/lamb.py",
            "training/optimizers/masters.py",
            "training/optimizers/muon.py",
        ),
    ),
    (
        "training/recipe/test_recipe.py",
        "a recipe is read, checked and written as one thing",
        ("training/recipe/checks.py", "training/recipe/text.py", "training/recipe/values.py"),
    ),
    # ---- parts of something that is tested whole
    ("test_engine.py", "buckets are seen by what the engine runs together", ("buckets.py", "pooling.py")),
    ("test_scheduler.py", "an engine for one caller among many", ("asking.py",)),
    ("service/test_app.py", "a request from its door to its answer", (
        "service/bodies.py", "service/desk.py", "service/metrics.py",
    )),
    ("service/test_client.py", "what goes over the wire", ("service/tokenizers.py", "service/wire.py")),
    ("service/test_native.py", "what is admitted by its weight, given a source, told while it runs", (
        "service/sources.py", "service/streaming.py", "service/weighing.py",
    )),
    ("explorer/test_routes.py", "the command is the page", ("cli/explore.py",)),
    ("service/test_openai.py", "prompts are what completions are made of", ("service/prompts.py",)),
    ("service/test_run.py", "the command is the server", ("cli/serve.py",)),
    ("cli/test_commands.py", "short commands that print text", (
        "cli/choose.py", "cli/cite.py", "cli/models.py", "references.py",
    )),
    ("cli/test_methods.py", "what is listed is the catalogue, and it is what the registries say", (
        "cli/catalogue.py", "cli/cataloguing.py",
    )),
    ("cli/test_joint.py", "a comparison is the joint's, once a construction", ("cli/compare.py", "cli/options.py")),
    ("cli/test_score.py", "settings, lengths and rows are those of a score", (
        "cli/config.py", "cli/lengths.py", "cli/rows.py",
    )),
    ("cli/test_bulk.py", "commands and the job that they share", ("cli/bulk_work.py",)),
    ("cli/test_score_failures.py", "how a command ends", ("cli/exits.py",)),
    ("cli/test_kills.py", "suites that go on after a kill", ("cli/evaluating.py",)),
    ("conditionals/test_transformer.py", "what masked and causal networks share, asked of each family", (
        "conditionals/contract.py", "conditionals/network.py", "conditionals/split.py",
    )),
    ("conditionals/test_loading.py", "folders good and bad are loaded", ("conditionals/checkpoint.py",)),
    ("constraints/test_automaton.py", "expressions and the letters they are over", (
        "constraints/alphabet.py", "constraints/regex.py",
    )),
    ("constraints/test_solving.py", "the search is what solves", ("constraints/search.py",)),
    ("diagnostics/test_chain_plots.py", "the pictures of chains", ("diagnostics/plots.py",)),
    ("diagnostics/test_rectangle.py", "what is found is shown", ("diagnostics/show.py",)),
    ("evaluation/test_minimal_pairs.py", "pairs are read to be scored", ("evaluation/pair_files.py",)),
    ("evaluation/test_evaluate.py", "a suite is run, and what it found is shown", (
        "evaluation/evaluation.py", "evaluation/running.py", "evaluation/suite.py",
        "evaluation/suites/minimal_pairs.py",
    )),
    ("files/test_writing.py", "rows are encoded", ("files/encoding.py",)),
    ("fills/test_fill.py", "a beam is one way to fill", ("fills/beam.py",)),
    ("joints/test_block.py", "the joint of a block, asked for, made and shown", (
        "joints/block_ag.py", "joints/block_asking.py", "joints/block_loglinear.py", "joints/block_show.py",
        "joints/fillings.py",
    )),
    ("joints/test_comparison.py", "distances between joints", ("joints/metrics.py",)),
    ("joints/test_kernels.py", "the fused passes and the tiles they run over", ("joints/tiles.py",)),
    ("test_vocabulary.py", "where tokens and words stand", ("spans.py",)),
    ("rescoring/test_formats.py", "every format in an example of its own, read and written back", (
        "rescoring/formats/espnet.py", "rescoring/formats/hyporadise.py", "rescoring/formats/jsonl.py",
        "rescoring/formats/kaldi.py", "rescoring/formats/mlm_scoring.py", "rescoring/formats/moses.py",
        "rescoring/formats/reading.py", "rescoring/formats/tsv.py", "rescoring/lists.py",
    )),
    ("rescoring/test_rescore.py", "lists that are rescored are judged and shown", (
        "rescoring/judging.py", "rescoring/result.py",
    )),
    ("lab/experiments/test_dictionary.py", "the experiments of the sampling side, each run once", (
        "lab/experiments/beyond.py", "lab/experiments/clique_masks.py", "lab/experiments/closed_forms.py",
        "lab/experiments/entropy.py", "lab/experiments/parallel_pass.py", "lab/experiments/passes.py",
        "lab/experiments/slow_both.py", "lab/experiments/star_order.py", "lab/experiments/stutter.py",
    )),
    ("lab/experiments/test_masking_more.py", "the experiments of the training side, each run once", (
        "lab/experiments/best_masks.py", "lab/experiments/efficiency_curves.py", "lab/experiments/finite_sample.py",
        "lab/experiments/looking_masks.py",
        "lab/experiments/simulated_estimators.py",
    )),
    ("lab/experiments/test_trained_rates.py", "what trained networks are compared by", (
        "lab/experiments/trained_dependence.py", "lab/experiments/trained_laws.py",
    )),
    ("lab/learning/test_information.py", "what the losses are made of, against loops", ("lab/learning/gradients.py",)),
    ("lab/systems/test_system.py", "every system is held to its definition, one row each", (
        "lab/systems/graphs.py", "lab/systems/markov.py", "lab/systems/mixture.py", "lab/systems/pairwise.py",
        "lab/systems/random.py",
    )),
    ("results/test_conformance.py", "the contract of all results", ("results/result.py",)),
    ("masks/test_pmi_vocabulary.py", "a vocabulary is counted over a corpus", ("masks/corpus.py", "masks/counting.py")),
    ("samplers/kernels/test_spindle.py", "the schedules of tokens, beside those of the objective", (
        "masks/token_schedules.py",
    )),
    ("samplers/test_sampling.py", "the sheet that chains write on, and the chains", (
        "samplers/chain.py", "samplers/sheet.py",
    )),
    ("samplers/editing/test_augment.py", "what augmenting moves and returns", (
        "samplers/editing/augmented.py", "samplers/editing/copying.py", "samplers/editing/states.py",
    )),
    ("samplers/editing/test_edit.py", "which words are named", ("samplers/editing/rewrite.py",)),
    ("samplers/kernels/test_metropolis.py", "what Metropolis proposes, against its matrix", (
        "samplers/kernels/proposals.py",
    )),
    ("scores/test_score.py", "a score as a choice and as data", ("scores/choice.py", "scores/record.py")),
    ("scores/test_marginals.py", "marginals are asked for and shown", (
        "scores/marginals_asking.py", "scores/marginals_show.py",
    )),
    ("study/test_report.py", "the pictures of the report", ("study/plot.py",)),
    ("explanation/test_explaining.py", "every way to leave a token out and every prediction, against its definition", (
        "explanation/delete.py", "explanation/marginalise.py", "explanation/mask.py", "explanation/prediction.py",
        "explanation/removal.py",
    )),
    ("explanation/test_explanation.py", "its picture", ("explanation/plots.py",)),
    ("heads/test_head.py", "a head is loaded to be used", ("heads/loading.py",)),
    ("heads/test_tuning.py", "from a recipe to a folder with its card", (
        "heads/card.py", "heads/network.py", "heads/own_family.py", "heads/recipe.py",
    )),
    ("cli/test_embed.py", "what can be read from vectors", ("cli/probe.py",)),
    ("training/data/test_loader.py", "the progress that batches are told", ("training/data/clock.py",)),
    ("training/data/test_sources.py", "rows are one kind of source", ("training/data/rows.py",)),
    ("training/network/test_encoder.py", "ragged batches and attention within them, against padded ones", (
        "training/network/attention.py", "training/network/batch.py",
    )),
    ("training/objectives/test_mae.py", "the decoder that it throws away", ("training/network/decoder.py",)),
    ("translation/test_learning.py", "a translator is trained end to end, and watched", (
        "training/run/text.py",
    )),
    ("training/objectives/test_mlm.py", "the contract, in its shortest objective", (
        "training/objectives/objective.py",
    )),
    ("training/objectives/test_task.py", "what is learned beside an objective", ("training/objectives/mixture.py",)),
    ("training/objectives/test_mdlm.py", "a share of plain masks beside an objective", (
        "training/objectives/sharing.py",
    )),
    ("training/run/test_run.py", "a finished run is exported", ("training/run/export.py",)),
    ("training/run/test_logs.py", "what is told before and while it runs", (
        "training/run/forecast.py", "training/run/meter.py",
    )),
    ("training/run/test_processes.py", "several processes", ("training/run/ranks.py",)),
)  # fmt: skip
COVERED: dict[str, tuple[str, str]] = {module: (test, why) for test, why, modules in ROWS for module in modules}

NOTHING_RUNS: dict[str, str] = {"arrays.py": "names of types"}

WHOLE: dict[str, str] = {  # tests of no one file
    "cli/test_help.py": "`--help` of all commands; their examples are run",
    "cli/test_kills.py": "commands that are killed, started twice or out of room",
    "cli/test_process.py": "the command as a process: streams, signals, how soon it answers",
    "cli/test_resume.py": "a scored file that goes on after a kill, byte for byte",
    "constraints/test_networks.py": "constraints on networks and under kernels",
    "explorer/test_page.py": "the page in a real browser",
    "fuzz/test_fuzz.py": "hostile inputs of all commands and of everything public",
    "lab/test_names.py": "what is public of the lab",
    "results/test_conformance.py": "the contract of all results",
    "samplers/test_hostile.py": "whatever is said of the options of verbs that write or diagnose",
    "service/test_hostile.py": "whatever is said in the body of a request",
    "service/test_schema.py": "whatever the schema allows, and nearly allows",
    "scores/test_networks.py": "all methods on one network of each family",
    "test_cuda.py": "what runs differently on CUDA, beside the CPU",
    "test_examples.py": "what the pages show",
    "test_house_rules.py": "the linter of house rules",
    "test_style.py": "the linter of wording",
    "test_docstrings.py": "what public verbs say of themselves",
    "test_notebooks.py": "the notebooks of the documentation",
    "test_threads.py": "what threads could share, in all rooms",
    "test_peers.py": "the same numbers as others",
    "test_public.py": "what is public",
    "test_release.py": "wheel and sdist",
    "test_walks.py": "the walks in docs/architecture.md",
    "training/objectives/test_surgery.py": "whether an objective leaves a plain network behind",
    "training/run/test_resume.py": "a run that is killed, whatever its parts",
    "training/run/test_unmasked.py": "runs that mask nothing, from the recipe to the card",
    "training/tokenizer/test_tokenizer.py": "the package itself",
    "translation/test_study.py": "benchmarks/translation.py, from pairs to its figure",
}
