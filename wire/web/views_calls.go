package web

// CallPage is the page of a call. key is the secret in its link.
func CallPage(key string) View {
	return View{Template: "call", Title: "Call", Script: client.Call, Wide: true, Data: struct{ Key string }{key}}
}
