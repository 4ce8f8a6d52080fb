import{a as o,b as r}from"./chunk-DEOPIXPL.js";import"./chunk-6BPYWO6N.js";import"./chunk-ZU5UPSDA.js";export{r as NotificationFields,o as Notifications};
