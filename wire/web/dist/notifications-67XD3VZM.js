import{a as o,b as r}from"./chunk-TWTELGHT.js";import"./chunk-RXHUNZZF.js";import"./chunk-PWOKPM4Q.js";import"./chunk-XFCPJJJR.js";export{r as NotificationFields,o as Notifications};
