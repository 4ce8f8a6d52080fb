import{$a as r}from"./chunk-Y5UUDIUK.js";r();
