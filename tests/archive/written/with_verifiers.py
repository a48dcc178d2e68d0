"""Two episodes of one task as the real library writes them: `python with_verifiers.py OUT`."""

import sys
from pathlib import Path


def main(out: Path) -> None:
    from verifiers.v1.configs.agent import WireAgentConfig
    from verifiers.v1.episode import EnvInfo, EvalRunInfo, WireEpisode
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.task import WireTaskData
    from verifiers.v1.trace import AgentInfo, Reward, State, Trace, TraceTask
    from verifiers.v1.types import AssistantMessage, UserMessage
    from verifiers.v1.utils.trace_store import write_episode

    answers = {"4": {"right": Reward(score=1.0, weight=2.0)}, "5": {"right": Reward(score=0.0), "judge": None}}
    task = TraceTask(type="Sum", data=WireTaskData(prompt="2+2?", answer="4"), key="sum-2-2")
    for text, rewards in answers.items():
        nodes = [
            MessageNode(message=UserMessage(content="2+2?"), token_ids=[1, 2], mask=[False, False]),
            MessageNode(
                parent=0, sampled=True, message=AssistantMessage(content=text), token_ids=[9, 5], mask=[False, True],
                logprobs=[-0.5], advantages=[0.25],
            ),
        ]  # fmt: skip
        trace = Trace[WireTaskData, State, WireAgentConfig](
            task=task, agent=AgentInfo(config=WireAgentConfig(), name="solver"), nodes=nodes, rewards=rewards
        )
        env, run = EnvInfo(id="sums", name="sums"), EvalRunInfo(id="r")
        write_episode(out, WireEpisode(env=env, task=task, run=run, ok=True, traces=[trace]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
