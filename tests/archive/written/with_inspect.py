"""Three samples × two epochs of a scripted model by the real tool: `python with_inspect.py OUT eval|json`."""

import sys


def main(out: str, form: str) -> None:
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match

    def say(messages, *_):
        """2+2 is always right, 2+3 never, anything else only when it is asked for the first time."""
        asked.append(messages[-1].text)
        right = asked[-1] == "2+2?" or (asked[-1] == "2+4?" and asked.count("2+4?") == 1)
        output = ModelOutput.from_content("mockllm/model", "4" if right else "9")
        output.usage = ModelUsage(input_tokens=3, output_tokens=1, total_tokens=4)
        return output

    asked: list[str] = []
    eval(
        Task(
            dataset=[Sample(input=f"2+{n}?", target="4", id=n) for n in (2, 3, 4)],
            scorer=match(),
            epochs=2,
            name="sums",
        ),
        model=get_model("mockllm/model", custom_outputs=say),
        log_dir=out,
        log_format=form,
        display="none",
        max_samples=1,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
