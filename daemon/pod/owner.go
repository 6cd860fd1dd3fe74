package pod

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Owner is a daemon as the one whose pods are whose: it marks the pods that it makes, and knows them again. Its name stands on each of them for
// all to see; the intent token beside it proves that the name is not borrowed. The zero Owner marks nothing and owns nothing.
type Owner struct {
	name string
	key  [sha256.Size]byte
}

// NewOwner returns the owner that a secret stands for. Neither its name nor a token tells anything of the secret.
func NewOwner(secret [32]byte) Owner {
	o := Owner{key: secret}
	o.name = o.mac("owner")
	return o
}

// Name is the value of LabelOwner on the owner's pods, the same as long as the secret is.
func (o Owner) Name() string { return o.name }

// Whose says in words for people whose pod this is if it is not the owner's: "another daemon's". It is empty for the owner's own pods.
//
// A pod without the label is not ours, whatever else it says: nobody can tell who made it. Nor is one that carries our name and a token that was
// made for another pod: it is a copy that somebody made by hand.
func (o Owner) Whose(p *corev1.Pod) string {
	name, marked := p.Labels[LabelOwner]
	switch {
	case !marked || name == "":
		return "nobody can tell whose: it has no label " + LabelOwner
	case name != o.name:
		return fmt.Sprintf("another daemon's, or this one's from before its state folder was lost: label %s is %s, here it is %s",
			LabelOwner, bounded(name, maxReason), o.name)
	case !hmac.Equal([]byte(p.Annotations[AnnotationIntent]), []byte(o.intent(p))):
		return "a copy made by hand: it carries this daemon's label " + LabelOwner + ", and another pod's token"
	}
	return ""
}

// mark makes a pod the owner's. The pod must have its name and the labels that say which executor it is.
func (o Owner) mark(p *corev1.Pod) {
	if o.name == "" {
		return
	}
	p.Labels[LabelOwner] = o.name
	p.Annotations[AnnotationIntent] = o.intent(p)
}

// intent is the token of the decision that a pod stands for: which executor, of which life of which application, under which name.
func (o Owner) intent(p *corev1.Pod) string {
	return o.mac(fmt.Sprintf("intent\n%s\n%s\n%q\n%q\n%q", p.Namespace, p.Name, p.Labels[LabelApp], p.Labels[LabelIncarnation], p.Labels[LabelExecutor]))
}

// mac is a text's authentication code, short enough to be read and long enough not to be guessed.
func (o Owner) mac(text string) string {
	m := hmac.New(sha256.New, o.key[:])
	m.Write([]byte("pod\n" + text))
	return hex.EncodeToString(m.Sum(nil)[:8])
}
