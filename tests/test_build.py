"""Parts, and what the controller of each release builds from a TrainJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainlint.programs.kubeflow.build import BuiltJob
from trainlint.programs.kubeflow.built_value import UNKNOWN, BuiltValue, Owner, merge
from trainlint.programs.kubeflow.facts.crds import shipped_runtimes
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.programs.kubeflow.objects import Runtime, TrainJob
from trainlint.reading.document import of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field
from trainlint.resolve import plain

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Json

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def part(data: Json) -> BuiltValue:
    """Plain data as a part."""
    place = Field.root(of_data("", data), Dialect.KUBERNETES)
    if isinstance(data, dict):
        return BuiltValue({key: part(value) for key, value in data.items()}, place, Owner.JOB)
    return BuiltValue([part(item) for item in data] if isinstance(data, list) else data, place, Owner.JOB)


def built(spec: dict[str, Json], runtime: dict[str, Json], release: str = "2.3", name: str | None = "tune") -> BuiltJob:
    """A job of this spec on this runtime."""
    metadata: dict[str, Json] = {"name": name} if name else {"generateName": "tune-"}
    job = of_data("job.yaml", {"metadata": metadata, "spec": spec})
    definition = of_data("runtime.yaml", runtime)
    return BuiltJob(
        TrainJob(Field.root(job, Dialect.KUBERNETES)),
        Runtime(Field.root(definition, Dialect.KUBERNETES)),
        RELEASES[release],
    )


def runtime(policy: Json, pod: dict[str, Json] | None = None, job: str = "node") -> dict[str, Json]:
    """A runtime with one job of one container."""
    containers: Json = [{"name": "node", "image": "a"}]
    template: dict[str, Json] = {"spec": {"template": {"spec": {"containers": containers, **(pod or {})}}}}
    template["metadata"] = {"labels": {ANCESTOR: "trainer"}}
    jobs: Json = [{"name": job, "template": template}]
    spec: dict[str, Json] = {"template": {"spec": {"replicatedJobs": jobs}}}
    if policy is not None:
        spec["mlPolicy"] = policy
    return {"metadata": {"name": "team"}, "spec": spec}


def shipped(name: str, release: str = "2.3") -> dict[str, Json]:
    """A runtime that a release ships."""
    return dict(shipped_runtimes(release)[name])


def env_of(job: BuiltJob, pods: int = 0) -> dict[str, Json]:
    """The variables of the container `node`."""
    container = job.jobs[pods].container("node")
    assert container is not None
    found = [plain(env) for env in container.get("env").items()]
    return {str(env["name"]): env.get("value") for env in found if isinstance(env, dict)}


@pytest.mark.parametrize(
    ("base", "patch", "merged"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            {"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "c"}, {"name": "a", "image": "x"}]},
            {"containers": [{"name": "c"}, {"name": "a", "image": "x"}, {"name": "b"}]},
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
            {"volumeMounts": [{"name": "w", "mountPath": "/a"}, {"name": "x", "mountPath": "/a"}]},
            {"volumeMounts": [{"name": "x", "mountPath": "/a"}]},
        ),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}),
    ],
)
def test_merge(base: Json, patch: Json, merged: Json) -> None:
    """Maps and some lists are merged, other lists replaced; new items come first, as in Go."""
    assert plain(merge(part(base), part(patch))) == merged


def test_a_test_on_what_is_not_known_is_false() -> None:
    """As with a Value; a boolean is no number."""
    value = part({"a": "x", "b": True, "c": 1, "d": []})
    assert value.get("a").is_("y", "x")
    assert value.get("a").known_and_not_in(("y",))
    assert not value.get("b").is_(1)
    assert value.get("c").is_(1)
    assert (value.get("d").empty, value.get("d").absent, value.get("e").absent) == (True, False, True)
    for other in (value.get("e"), value.get("d"), value.get("a").derive(UNKNOWN)):
        assert not other.is_("x", 1)
        assert not other.known_and_not_in(("y",))


@pytest.mark.parametrize("name", [{"a": "b"}, ["a"]])
def test_items_that_no_key_tells_apart_are_unknown(name: Json) -> None:
    """A name of a wrong type is for admission to refuse: what the merge would come to is not known."""
    merged = merge(part({"containers": [{"name": "node"}]}), part({"containers": [{"name": name}]}))
    assert merged.get("containers").unknown


def test_a_merged_value_keeps_the_place_that_gave_it() -> None:
    """A patch's value is reported at the patch, an untouched one at the runtime."""
    base, patch = part({"a": 1, "b": 2}), part({"b": 3})
    merged = merge(base, patch)
    assert merged.get("a").place is base.get("a").place
    assert merged.get("b").place is patch.get("b").place


@pytest.mark.parametrize(
    ("release", "spec", "processes"),
    [
        ("2.3", {"trainer": {}}, "1"),
        ("2.3", {"trainer": {"numProcPerNode": 3}}, "3"),
        ("2.3", {"trainer": {"resourcesPerNode": {"limits": {"cpu": "3500m"}}}}, "4"),
        ("2.3", {"trainer": {"resourcesPerNode": {"requests": {"cpu": 2}, "limits": {"cpu": 4}}}}, "2"),
        ("2.3", {"trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}}, "auto"),
        ("2.3", {"trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 2}}}}, None),
        ("2.0", {"trainer": {}}, "auto"),
        ("2.0", {"trainer": {"resourcesPerNode": {}}}, "1"),
        ("2.0", {"trainer": {"resourcesPerNode": {"limits": {"cpu": 3}}}}, "3"),
        ("2.0", {"trainer": {"resourcesPerNode": {"limits": {"cpu": 3}, "requests": {"cpu": 5}}}}, "3"),
        ("2.0", {"trainer": {"numProcPerNode": "cpu", "resourcesPerNode": {"limits": {"cpu": 3}}}}, "3"),
        ("2.1", {"trainer": {"numProcPerNode": "cpu", "resourcesPerNode": {"limits": {"cpu": 3}}}}, "3"),
    ],
)
def test_processes_of_torch(release: str, spec: dict[str, Json], processes: str | None) -> None:
    """How many processes torchrun starts per node, which is nobody's guess with two kinds of GPUs."""
    policy: Json = {"torch": {"numProcPerNode": "auto"} if release < "2.2" else {}}
    job = built({"runtimeRef": {"name": "team"}, **spec}, runtime(policy), release)
    assert env_of(job)["PET_NPROC_PER_NODE"] == processes


def test_torch_sets_nothing_without_a_trainer() -> None:
    """No spec.trainer, no PET_ variables."""
    assert env_of(built({"runtimeRef": {"name": "team"}}, runtime({"torch": {}}))) == {}


def test_a_generated_name_makes_addresses_unknown() -> None:
    """What holds the job's name is not told; its length is."""
    job = built({"runtimeRef": {"name": "team"}, "trainer": {}}, runtime({"torch": {}}), name=None)
    assert env_of(job)["PET_MASTER_ADDR"] is None
    assert job.name_length == len("tune-") + 5


def test_resources_are_merged_from_2_3_on() -> None:
    """Before that, the job's stand in place of the runtime's."""
    spec: dict[str, Json] = {
        "runtimeRef": {"name": "torchtune-llama3.2-1b"},
        "trainer": {"resourcesPerNode": {"limits": {"memory": "1Gi"}}},
    }
    for release, limits in (("2.2", {"memory": "1Gi"}), ("2.3", {"memory": "1Gi", "nvidia.com/gpu": "2"})):
        job = built(spec, shipped("torchtune-llama3.2-1b", release), release)
        container = job.jobs[2].container("node")
        assert container is not None
        assert plain(container.get("resources")) == {"limits": limits}


def test_resources_need_a_policy() -> None:
    """From 2.3 on a runtime without mlPolicy keeps its own resources."""
    spec: dict[str, Json] = {
        "runtimeRef": {"name": "team"},
        "trainer": {"resourcesPerNode": {"limits": {"memory": "1Gi"}}},
    }
    container = built(spec, runtime(None)).jobs[0].container("node")
    assert container is not None
    assert container.get("resources").absent


def test_ports_that_share_a_name_or_number() -> None:
    """No name is a name: the second port replaces the first, and stays."""
    ports: Json = [{"containerPort": 80}, {"containerPort": 81}]
    containers: Json = [{"name": "node", "image": "a", "ports": ports}]
    job = built({"runtimeRef": {"name": "team"}}, runtime({"torch": {}}, {"containers": containers}))
    container = job.jobs[0].container("node")
    assert container is not None
    assert [port.get("containerPort").number for port in container.get("ports").items()] == [81, 81]


def test_a_patch_adds_a_job_from_2_3_on() -> None:
    """Before that, a patch goes into jobs that exist."""
    patch: Json = {"replicatedJobs": [{"name": "worker", "template": {"spec": {}}}]}
    spec: dict[str, Json] = {
        "runtimeRef": {"name": "team"},
        "runtimePatches": [{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": patch}}}],
    }
    assert [pods.name for pods in built(spec, runtime({"torch": {}})).jobs] == ["worker", "node"]
    assert [pods.name for pods in built(spec, runtime({"torch": {}}), "2.2").jobs] == ["node"]


def test_mpi_counts_the_launcher_as_a_node() -> None:
    """With runLauncherAsNode the job `node` gets one pod less, and one at least."""
    for nodes, pods in ((4, 3), (1, 1)):
        spec: dict[str, Json] = {"runtimeRef": {"name": "deepspeed-distributed"}, "trainer": {"numNodes": nodes}}
        job = built(spec, shipped("deepspeed-distributed"))
        assert {p.name: p.count.number for p in job.jobs} == {"launcher": 1, "node": pods}


def test_flux_needs_a_number_of_nodes() -> None:
    """Without it the controller crashes, and nothing more is said of the job."""
    job = built({"runtimeRef": {"name": "team"}, "trainer": {}}, runtime({"flux": {}}))
    assert job.stops is not None
    assert job.jobs == []


def test_flux_wraps_the_command() -> None:
    """The job's command becomes the argument of Flux' own entry point, and its args with it."""
    trainer: Json = {"numNodes": 2, "command": ["python", "train.py"], "args": ["--fast"]}
    job = built({"runtimeRef": {"name": "team"}, "trainer": trainer}, runtime({"flux": {}}))
    pods = job.jobs[0]
    container = pods.container("node")
    assert container is not None
    assert container.get("command").texts() == ["/bin/bash", "/etc/flux-config/entrypoint.sh", "python train.py --fast"]
    assert container.get("args").absent
    assert [part.name for part in pods.init_containers] == ["flux-installer"]


def test_templates_are_unknown() -> None:
    """What a template fills in is neither there nor missing."""
    spec: dict[str, Json] = {"runtimeRef": {"name": "team"}, "trainer": {"image": "{{ .Values.image }}", "numNodes": 2}}
    container = built(spec, runtime({"torch": {}})).jobs[0].container("node")
    assert container is not None
    assert container.get("image").unknown
    assert container.get("image").given


def test_variables_replace_the_first_of_their_name_and_follow_the_others() -> None:
    """A name that is not known replaces nothing."""
    pod: dict[str, Json] = {
        "containers": [
            {"name": "node", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
        ]
    }
    own: Json = [{"name": "B", "value": "3"}, {"name": "A", "value": "4"}, {"name": "B", "value": "5"}]
    job = built({"trainer": {"env": own}}, runtime({"torch": {}}, pod))
    container = job.jobs[0].container("node")
    assert container is not None
    found = [(plain(env.get("name")), plain(env.get("value"))) for env in container.get("env").items()]
    assert found[:3] == [("A", "4"), ("A", "2"), ("B", "5")]


HEAVY: dict[str, Json] = {
    "labels": {"team": "a"},
    "annotations": {"owner": "b"},
    "initializer": {
        "dataset": {"storageUri": "hf://d", "env": [{"name": "A", "value": "b"}], "secretRef": {"name": "s"}},
        "model": {"storageUri": "hf://m"},
    },
    "trainer": {
        "image": "own",
        "command": ["tune", "run"],
        "args": ["batch_size=2"],
        "numNodes": 3,
        "numProcPerNode": 2,
        "env": [{"name": "C", "value": "d"}],
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2, "cpu": 4}},
    },
}
PATCHES: dict[str, Json] = {
    "runtimePatches": [
        {
            "trainingRuntimeSpec": {
                "template": {
                    "metadata": {"labels": {"x": "y"}},
                    "spec": {
                        "replicatedJobs": [
                            {
                                "name": "node",
                                "template": {
                                    "spec": {
                                        "template": {
                                            "metadata": {"labels": {"p": "q"}},
                                            "spec": {
                                                "volumes": [{"name": "v", "emptyDir": {}}],
                                                "containers": [
                                                    {"name": "node", "env": [{"name": "E", "value": "f"}]},
                                                    {"name": "more", "image": "m"},
                                                ],
                                            },
                                        }
                                    }
                                },
                            }
                        ]
                    },
                }
            }
        }
    ]
}


@pytest.mark.parametrize("release", RELEASES)
def test_a_job_leaves_its_runtime_as_it_is(release: str) -> None:
    """What the steps write for one job, no other job with the same runtime has."""
    scheduled = runtime({"numNodes": 2, "torch": {}}, {"initContainers": [{"name": "i", "image": "i"}]})
    assert isinstance(scheduled["spec"], dict)
    scheduled["spec"]["podGroupPolicy"] = {"coscheduling": {"scheduleTimeoutSeconds": 10}}
    patches = PATCHES if RELEASES[release].overrides_field == "runtimePatches" else {}
    for definition in (*shipped_runtimes(release).values(), scheduled):
        shared = Runtime(Field.root(of_data("runtime.yaml", dict(definition)), Dialect.KUBERNETES))
        untouched = plain(built({}, dict(definition), release).jobset)
        for spec in ({**HEAVY, **patches}, {}):
            job = of_data("job.yaml", {"metadata": {"name": "tune"}, "spec": spec})
            last = BuiltJob(TrainJob(Field.root(job, Dialect.KUBERNETES)), shared, RELEASES[release]).jobset
            changed = plain(last) != untouched
            assert changed == bool(spec)
