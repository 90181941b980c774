"""A request for a comparison: read, generate, compare and report, one step after the other."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from fastapi import Request

import gazediffusion as gd
from gazediffusion.web import comparison
from gazediffusion.web.models import ServedModel
from gazediffusion.web.playground import Playground
from gazediffusion.web.requests import GenerationRequest
from gazediffusion.web.schemas import GenerationFields
from gazediffusion.web.tasks import joined, task_counts
from gazediffusion.web.uploads import Upload
from gazediffusion.web.verdict import require_recorded, require_synthetic
from gazediffusion.web.worker import Report


@dataclass(frozen=True)
class ComparisonRequest:
    """Recordings, sent or of the server, and the synthetic windows they are compared with."""

    play: Playground
    request: Request
    fields: GenerationFields
    served: ServedModel
    upload: Upload

    async def compare(self, report: Report) -> dict[str, Any]:
        """The results as JSON values, with the id under which they are kept."""
        results, evaluation = await self._compared(report)
        return {**results, "comparison": self.play.comparisons.add(evaluation)}

    async def report(self, report: Report) -> dict[str, Any]:
        """The report of a new comparison, and the id of that."""
        _, evaluation = await self._compared(report)
        page = await report_of(evaluation, self.play, self.request, report)
        return {**page, "comparison": self.play.comparisons.add(evaluation)}

    def close(self) -> None:
        """Delete the upload."""
        self.upload.close()

    async def _compared(self, report: Report) -> tuple[dict[str, Any], bytes]:
        """The recording is read first: an invalid one fails early, and its tasks are generated."""
        play, request, upload = self.play, self.request, self.upload
        require_synthetic(self.fields.n)
        is_limited = bool(upload.paths)
        if is_limited:
            real = await play.read(upload, self.served, request, report)
        else:
            real = await play.served_real(self.served, request, report)
        counts = await play.compute(request, report, is_limited, comparison.count_tasks, real)
        synthetic = await self._generated(json.loads(counts), report)
        tasks = tuple(self.served.about.tasks)
        given = (real, synthetic, tasks, self.fields.task, upload.evaluation)
        results = await play.compute(request, report, is_limited, comparison.compare, *given)
        return json.loads(results), upload.evaluation.read_bytes()

    async def _generated(self, recorded: dict[str, int], report: Report) -> gd.Windows:
        """Synthetic windows of the recorded tasks, in their shares."""
        play, fields = self.play, self.fields
        require_recorded(sum(recorded.values()))
        parts: list[gd.Windows] = []
        counts = task_counts(recorded, self.served.about.tasks, fields.task, fields.n)
        for task, n in counts.items():
            before = sum(map(len, parts))

            def tell(progress: dict[str, Any], before: int = before) -> None:
                report({**progress, "done": before + progress["done"], "n": fields.n})

            asked = fields.model_copy(update={"task": task, "n": n})
            of = GenerationRequest.of
            requested = await asyncio.to_thread(of, asked, play.models, play.settings.limits)
            parts.append(await play.generate(requested, self.request, tell))
        return joined(parts)


async def report_of(
    evaluation: bytes, play: Playground, request: Request, report: Report
) -> dict[str, Any]:
    """The report of an evaluation as a page."""
    page = await play.compute(request, report, True, comparison.write_report, evaluation)
    return {"page": page.decode()}
