package model

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	listvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Page is a list, or a part of one, as of one version.
type Page struct {
	metav1.ListMeta

	Items []Object
}

// List returns the objects of ref.Resource in ref.Namespace (all namespaces when empty) that the selectors match,
// ordered by namespace and name. With a limit it returns a page and a token for the next one, which shows the same
// version however much has been written since. Errors: 400, 404, 410 (version or token too old), 422, 504 (version
// that has not happened).
func (s *Server) List(ref Ref, opts metav1.ListOptions) (Page, error) {
	c, err := s.collection(Ref{Resource: ref.Resource})
	if err != nil {
		return Page{}, err
	}
	selected, err := parseSelectors(c.resource, opts)
	if err != nil {
		return Page{}, err
	}
	if err = validateList(opts, false); err != nil {
		return Page{}, err
	}
	from, err := s.readPoint(opts)
	if err != nil {
		return Page{}, err
	}
	page := Page{Items: []Object{}}
	page.ResourceVersion = strconv.FormatUint(from.version, 10)
	prefix := prefixOf(c.resource, ref.Namespace)
	keys, at := s.state(c, from.version)
	start, _ := slices.BinarySearch(keys, prefix+from.start)
	for i := start; i < len(keys) && strings.HasPrefix(keys[i], prefix); i++ {
		obj := at(keys[i])
		if !selected.matches(obj) {
			continue
		}
		if opts.Limit > 0 && int64(len(page.Items)) == opts.Limit {
			last := page.Items[len(page.Items)-1]
			page.Continue = token{Version: from.version, Start: strings.TrimPrefix(key(last.GetNamespace(), last.GetName()), prefix) + "\x00"}.String()
			if selected.everything {
				left := int64(countPrefix(keys[i:], prefix))
				page.RemainingItemCount = &left
			}
			break
		}
		page.Items = append(page.Items, obj)
	}
	return page, nil
}

// readPoint is the version that a list shows, and where in it to start.
type readPoint struct {
	version uint64
	start   string
}

func (s *Server) readPoint(opts metav1.ListOptions) (readPoint, error) {
	if opts.Continue != "" {
		return s.continued(opts)
	}
	asked, err := parseVersion(opts.ResourceVersion)
	switch {
	case err != nil:
		return readPoint{}, err
	case asked > s.version:
		return readPoint{}, tooLarge(asked, s.version)
	}
	exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		opts.ResourceVersionMatch == "" && opts.Limit > 0 && asked > 0 // what a limit meant before the match was a parameter
	if !exact {
		return readPoint{version: s.version}, nil
	}
	if asked < s.floor {
		return readPoint{}, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	return readPoint{version: asked}, nil
}

func (s *Server) continued(opts metav1.ListOptions) (readPoint, error) {
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return readPoint{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	t, err := parseToken(opts.Continue)
	if err != nil {
		return readPoint{}, err
	}
	switch {
	case t.inconsistent:
		return readPoint{version: s.version, start: t.Start}, nil
	case t.Version > s.version:
		return readPoint{}, tooLarge(t.Version, s.version)
	case t.Version >= s.floor:
		return readPoint{version: t.Version, start: t.Start}, nil
	}
	expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that " +
		"were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	expired.ErrStatus.Continue = token{Start: t.Start, inconsistent: true}.String()
	return readPoint{}, expired
}

// state returns the keys, in order, and the objects of a collection as of a version that is still in the window.
func (s *Server) state(c *collection, version uint64) (keys []string, at func(string) Object) {
	past := map[string]Object{}
	for i := len(s.log) - 1; i >= 0 && s.log[i].version > version; i-- {
		if s.log[i].resource == c.resource {
			past[s.log[i].key] = s.log[i].old
		}
	}
	if len(past) == 0 {
		return c.keys, func(key string) Object { return c.objects[key] }
	}
	for _, key := range c.keys {
		if _, changed := past[key]; !changed {
			keys = append(keys, key)
		}
	}
	for key, obj := range past {
		if obj != nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, func(key string) Object {
		if obj, changed := past[key]; changed {
			return obj
		}
		return c.objects[key]
	}
}

func prefixOf(r *resource, namespace string) string {
	if !r.Namespaced || namespace == "" {
		return ""
	}
	return namespace + "/"
}

func countPrefix(keys []string, prefix string) int {
	n, _ := slices.BinarySearchFunc(keys, prefix, func(key, prefix string) int {
		if strings.HasPrefix(key, prefix) {
			return -1
		}
		return 1
	})
	return n
}

// token says where the next page of a list starts, in the form that real servers use.
type token struct {
	Version      uint64
	Start        string
	inconsistent bool // shows the newest state instead of one version
}

type wireToken struct {
	APIVersion string `json:"v"`
	Version    int64  `json:"rv"`
	Start      string `json:"start"`
}

const tokenVersion = "meta.k8s.io/v1"

func (t token) String() string {
	w := wireToken{APIVersion: tokenVersion, Version: int64(t.Version), Start: t.Start}
	if t.inconsistent {
		w.Version = -1
	}
	b, err := json.Marshal(w)
	if err != nil { // a struct of two strings and a number always encodes
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseToken(text string) (token, error) {
	invalid := func(why any) error {
		return apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", why))
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return token{}, invalid(err)
	}
	var w wireToken
	if err := json.Unmarshal(b, &w); err != nil {
		return token{}, invalid(err)
	}
	switch {
	case w.APIVersion != tokenVersion:
		return token{}, invalid(fmt.Sprintf("server does not recognize this encoded version %q", w.APIVersion))
	case w.Version == 0 || w.Version < -1:
		return token{}, invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case w.Start == "":
		return token{}, invalid("encoded start key empty (version meta.k8s.io/v1)")
	}
	return token{Version: uint64(max(w.Version, 0)), Start: w.Start, inconsistent: w.Version == -1}, nil
}

func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", text, err))
	}
	return version, nil
}

func validateList(opts metav1.ListOptions, watching bool) error {
	errs := listvalidation.ValidateListOptions(&internalversion.ListOptions{
		Watch:                watching,
		AllowWatchBookmarks:  opts.AllowWatchBookmarks,
		ResourceVersion:      opts.ResourceVersion,
		ResourceVersionMatch: opts.ResourceVersionMatch,
		SendInitialEvents:    opts.SendInitialEvents,
		Continue:             opts.Continue,
		Limit:                opts.Limit,
	}, true)
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	return nil
}
