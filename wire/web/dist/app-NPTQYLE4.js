import{Wb as r}from"./chunk-WKYJCQHX.js";r();
