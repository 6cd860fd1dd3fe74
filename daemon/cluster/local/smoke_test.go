package local_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/retinue-sched/retinue/daemon/cluster/local"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	if err := local.Up(ctx, local.Options{Dir: dir, Out: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	t.Log("up after", time.Since(begin))
	sh := func(cmd string) {
		c := exec.Command("sh", "-c", cmd)
		c.Env = append(os.Environ(), "KUBECONFIG="+dir+"/kubeconfig", "HOME="+dir)
		c.Stdin = strings.NewReader(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"local","command":["sh","-c"],"args":["echo hi $(WHO); echo err >&2; sleep 1; exit 3"],"env":[{"name":"WHO","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}`)
		out, err := c.CombinedOutput()
		t.Logf("%s\n%s %v", cmd, out, err)
	}
	sh("kubectl get nodes")
	sh("kubectl apply -f -")
	sh("kubectl get pods -o wide; kubectl wait --for=jsonpath='{.status.phase}'=Failed pod/a; kubectl get pods; kubectl logs a; kubectl describe pod a; kubectl get pod a -o yaml; kubectl get events; kubectl api-resources; kubectl version; kubectl get all")
	sh("ps aux | grep retinue; kubectl delete pod a; kubectl get pods; cat " + dir + "/log")
	begin = time.Now()
	if err := local.Down(ctx, dir); err != nil {
		t.Fatal(err)
	}
	t.Log("down after", time.Since(begin))
}
