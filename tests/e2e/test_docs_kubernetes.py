"""The tutorial for Kubernetes, typed on the double."""
import documents


def test_tutorial(act, kubernetes):
    for name in ("wide-0", "wide-1"):
        kubernetes.node(name, "add", gpus=2)
    act.env["KUBECONFIG"] = str(kubernetes.kubeconfig)
    assert documents.Reader("docs/tutorials/kubernetes.md", act.env, act.scratch / "home").read() > 10
