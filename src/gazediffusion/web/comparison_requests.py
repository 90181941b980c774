"""A request for a comparison: read, generate, compare and report, one step after the other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from gazediffusion.web import comparison
from gazediffusion.web.playground import Playground
from gazediffusion.web.requests import GenerationRequest
from gazediffusion.web.uploads import Upload
from gazediffusion.web.worker import Report


@dataclass(frozen=True)
class ComparisonRequest:
    """Recordings, sent or of the server, and the synthetic windows they are compared with."""

    play: Playground
    request: Request
    requested: GenerationRequest
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
        """The recording is read first: an invalid one fails early."""
        play, request, upload = self.play, self.request, self.upload
        if upload.paths:
            real = await play.read(upload, self.requested.served, request, report)
        else:
            real = await play.served_real(self.requested.served, request, report)
        synthetic = await play.generate(self.requested, request, report)
        given = (real, synthetic, upload.evaluation)
        results = await play.compute(
            request, report, bool(upload.paths), comparison.compare, *given
        )
        return json.loads(results), upload.evaluation.read_bytes()


async def report_of(
    evaluation: bytes, play: Playground, request: Request, report: Report
) -> dict[str, Any]:
    """The report of an evaluation as a page."""
    page = await play.compute(request, report, True, comparison.write_report, evaluation)
    return {"page": page.decode()}
