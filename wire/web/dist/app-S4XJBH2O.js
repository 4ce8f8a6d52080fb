import{$a as r}from"./chunk-KVT23WIS.js";r();
