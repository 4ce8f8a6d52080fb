import{a as o,b as r}from"./chunk-CW7MRRDT.js";import"./chunk-SSPV67PF.js";import"./chunk-3HMRJDAY.js";export{r as NotificationFields,o as Notifications};
