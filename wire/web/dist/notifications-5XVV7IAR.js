import{a as o,b as r}from"./chunk-XFODRZMD.js";import"./chunk-KVKCHTYI.js";import"./chunk-YOHDM7XK.js";import"./chunk-2ASQJOHF.js";export{r as NotificationFields,o as Notifications};
