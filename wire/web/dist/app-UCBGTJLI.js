import{Wb as r}from"./chunk-KC2XWJ3Z.js";r();
