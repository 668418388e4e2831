"""The tutorial for Kubernetes, typed on the double."""
import documents


def test_tutorial(act, kubernetes):
    """As a newcomer, whose projects nobody trusts yet."""
    del act.env["ACT_TRUSTED_PROJECTS"]
    for name in ("wide-0", "wide-1"):
        kubernetes.node(name, "add", gpus=2)
    act.env["KUBECONFIG"] = str(kubernetes.kubeconfig)
    kubernetes.tell("create", kind="Namespace", object={"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    kubernetes.tell("create", kind="ServiceAccount", object={"metadata": {"name": "default",
                                                                          "namespace": "restricted"}})
    assert documents.Reader("docs/tutorials/kubernetes.md", act.env, act.scratch / "home").read() > 10
    assert len(kubernetes.objects("Job", "restricted")) == 2 and kubernetes.objects("Job")
