# SPDX-License-Identifier: Apache-2.0
"""MLflow's own server on this machine, asked through its client."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import glidepath as gp

pytest.importorskip("mlflow", reason="mlflow is not installed")
pytest.importorskip("flask_cors", reason="what the server of mlflow needs is not installed")
NAN = math.nan


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """MLflow's own server on this machine, over a store of files."""
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        patch.setenv("_MLFLOW_SERVER_FILE_STORE", str(folder / "runs"))
        patch.setenv("_MLFLOW_SERVER_ARTIFACT_ROOT", str(folder / "artifacts"))
        import mlflow.server
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log(self, *_: Any) -> None:
                pass

        server = make_server("127.0.0.1", 0, mlflow.server.app, request_handler=Quiet)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def test_the_server_of_mlflow_through_its_client(mlflow_server: str) -> None:
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=mlflow_server)
    with pytest.raises(gp.IoError, match=rf"MLflow {mlflow_server}: no metric was logged"):
        gp.read_traces(mlflow_server)
    ids = []
    for run in range(2):
        ids.append(client.create_run("0", start_time=1_000_000 + run).info.run_id)
        for i, loss in enumerate((3.0, 2.0, NAN, 1.5)):
            at = 1_000_000 + 1500 * i
            client.log_metric(ids[-1], "train_loss", loss, timestamp=at, step=10 * min(i, 2))
            client.log_metric(ids[-1], "lr", 0.5, timestamp=at, step=10 * i)
    client.log_metric(client.create_run("0").info.run_id, "f1", 0.5)
    runs = gp.read_traces(client, metric="train_loss")  # the third run has none
    assert [run.name for run in runs] == ids
    assert gp.read_traces(client)[:2] == runs
    assert runs[0].step.tolist() == [0, 10, 20]
    assert runs[0].loss.tolist() == [3, 2, 1.5]
    np.testing.assert_array_equal(runs[0].lr, [0.5, 0.5, 0.5])
    assert runs[0].notes == ("1 repeated step: the later row was kept",)
    assert runs[0].wall_seconds is not None
    assert runs[0].wall_seconds.tolist() == [0, 1.5, 4.5]
    assert gp.read_traces(mlflow_server, metric="train_loss") == runs
    # The address in the browser, of a run and of an experiment.
    page = f"{mlflow_server}/#/experiments/0"
    assert gp.read_traces(f"{page}/runs/{ids[1]}") == runs[1:]
    assert len(gp.read_traces(page, metric="f1")) == 1
    with pytest.raises(gp.IoError, match=r"MLflow http.*: run \w+: no metric 'x', only "):
        gp.read_traces(page, metric="x")
    with pytest.raises(gp.IoError, match="RESOURCE_DOES_NOT_EXIST: Run 'abc' not found"):
        gp.read_traces(f"{page}/runs/abc")
