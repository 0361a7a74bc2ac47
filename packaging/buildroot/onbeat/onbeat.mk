################################################################################
#
# onbeat
#
################################################################################

ONBEAT_VERSION = 0.1.0
ONBEAT_TARGET = $(call qstrip,$(BR2_PACKAGE_ONBEAT_TARGET))
ONBEAT_SOURCE = onbeat-$(ONBEAT_VERSION)-$(ONBEAT_TARGET).tar.gz
# ONBEAT_PACKAGES is the folder that "cargo xtask packages" wrote.
ONBEAT_SITE = $(ONBEAT_PACKAGES)
ONBEAT_SITE_METHOD = file
ONBEAT_LICENSE = MIT or Apache-2.0
ONBEAT_LICENSE_FILES = share/doc/onbeat/LICENSE-MIT share/doc/onbeat/LICENSE-APACHE

define ONBEAT_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/bin/onbeat $(TARGET_DIR)/usr/bin/onbeat
endef

define ONBEAT_INSTALL_INIT_SYSTEMD
	mkdir -p $(TARGET_DIR)/usr/lib/systemd/system
	for unit in onbeat-watch onbeat-tune-undo; do \
		sed 's|/usr/local/bin/|/usr/bin/|' $(@D)/lib/systemd/system/$$unit.service \
			>$(TARGET_DIR)/usr/lib/systemd/system/$$unit.service || exit 1; \
	done
endef

$(eval $(generic-package))
