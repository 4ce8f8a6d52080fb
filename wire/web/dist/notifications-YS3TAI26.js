import{a as o,b as r}from"./chunk-VYCLYAUP.js";import"./chunk-VPZTORLX.js";import"./chunk-ZQENERSY.js";import"./chunk-YB3CZXZX.js";export{r as NotificationFields,o as Notifications};
