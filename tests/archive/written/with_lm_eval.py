"""Four documents, two filters, `repeats` answers each, by the real harness: `python with_lm_eval.py OUT REPEATS`."""

import json
import sys
from pathlib import Path

TASK = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
repeats: {repeats}
generation_kwargs: {{until: ["\\n"], do_sample: true}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
filter_list:
  - {{name: strict, filter: [{{function: take_first}}]}}
  - {{name: digits, filter: [{{function: regex, regex_pattern: "(\\\\d+)"}}, {{function: take_first}}]}}
"""


def main(out: Path, repeats: int) -> None:
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Scripted(LM):
        """Says "so 1" and "1" in turns."""

        def loglikelihood(self, requests):
            return [(0.0, True) for _ in requests]

        def loglikelihood_rolling(self, requests):
            return [0.0 for _ in requests]

        def generate_until(self, requests):
            return ["1" if index % 2 else "so 1" for index, _ in enumerate(requests)]

    data = out / "data.json"
    data.write_text("\n".join(json.dumps({"question": f"{n}+1?", "answer": str(n + 1)}) for n in range(4)))
    (out / "sums.yaml").write_text(TASK.format(data=data, repeats=repeats))
    tracker = EvaluationTracker(output_path=str(out / "log"))
    results = lm_eval.simple_evaluate(
        model=Scripted(),
        tasks=["sums"],
        task_manager=TaskManager(include_path=str(out), include_defaults=False),
        log_samples=True,
        evaluation_tracker=tracker,
        bootstrap_iters=0,
    )
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for task, rows in samples.items():
        tracker.save_results_samples(task_name=task, samples=rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
